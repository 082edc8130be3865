# The command alone, static, in an empty root:
#   docker build --tag argwhy . && docker run --rm --volume "$PWD:/data" argwhy fit days.csv -o days.argwhy
FROM rust:1.95.0-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends musl-tools
WORKDIR /argwhy
COPY . .
# The image has the toolchain that rust-toolchain.toml names; rustfmt and clippy are not needed here.
ENV RUSTUP_TOOLCHAIN=1.95.0
# musl's target links statically; its linker leaves symbols in, whatever the profile says.
RUN target="$(uname -m)-unknown-linux-musl" \
    && rustup target add "$target" \
    && cargo build --profile dist --locked --package argwhy-cli --target "$target" \
    && strip --strip-all -o /argwhy-static "target/$target/dist/argwhy"

FROM scratch
COPY --from=build /argwhy-static /argwhy
COPY --from=build /argwhy/LICENSE-MIT /LICENSE-MIT
# Files of the caller come here. `doctor` tries a file of its own, and an empty root has no /tmp.
WORKDIR /data
ENV TMPDIR=/data
ENTRYPOINT ["/argwhy"]
