# The command alone, static, in an empty root:
#   docker build --tag argwhy . && docker run --rm --volume "$PWD:/data" argwhy fit days.csv -o days.argwhy
FROM rust:1.95.0-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /argwhy
COPY . .
# The image has the toolchain that rust-toolchain.toml names; rustfmt and clippy are not needed here.
ENV RUSTUP_TOOLCHAIN=1.95.0
# Alpine's own target is musl, and static.
RUN cargo build --release --locked --package argwhy-cli && strip target/release/argwhy

FROM scratch
COPY --from=build /argwhy/target/release/argwhy /argwhy
COPY --from=build /argwhy/LICENSE-MIT /LICENSE-MIT
# Files of the caller come here. `doctor` tries a file of its own, and an empty root has no /tmp.
WORKDIR /data
ENV TMPDIR=/data
ENTRYPOINT ["/argwhy"]
