"use strict";
// The model: WebAssembly of argwhy's own mathematics, numbers in and out through one buffer.

async function unpacked(id) {
  const text = document.getElementById(id).textContent.trim();
  if (!text) return new Uint8Array(0);
  const binary = atob(text);
  const packed = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Engine {
  // `header`: the model's JSON; `arrays`: its numbers, in the order that `wire.rs` says.
  static async start(code, header, arrays) {
    const engine = new Engine();
    const { instance } = await WebAssembly.instantiate(code, {});
    engine.calls = instance.exports;
    const bytes = new TextEncoder().encode(header);
    const at = engine.calls.room_for_bytes(bytes.length);
    new Uint8Array(engine.calls.memory.buffer, at, bytes.length).set(bytes);
    engine.ask("open", arrays);
    return engine;
  }

  check(n) {
    if (n >= 0) return n;
    const { memory, message, message_len } = this.calls;
    const bytes = new Uint8Array(memory.buffer, message(), message_len());
    throw new Error(new TextDecoder().decode(bytes));
  }

  // Writes `numbers`, calls, and reads what came back.
  ask(name, numbers, ...more) {
    const at = this.calls.room(numbers.length);
    new Float64Array(this.calls.memory.buffer, at, numbers.length).set(numbers);
    const n = this.check(this.calls[name](...more));
    return new Float64Array(this.calls.memory.buffer, this.calls.numbers(), n).slice();
  }

  limit({ matrix, bound, equalMatrix, equalBound, lower, upper }) {
    const all = [...matrix.flat(), ...bound, ...equalMatrix.flat(), ...equalBound, ...lower, ...upper];
    this.ask("limit", all, bound.length, equalBound.length);
  }

  answer(signal, n) {
    const numbers = this.ask("answer", signal);
    const prices = [];
    for (let i = 2 * n + 1; i < numbers.length; i += 2) {
      prices.push({ code: numbers[i], price: numbers[i + 1] });
    }
    return {
      desired: numbers.slice(0, n),
      decision: Number.isNaN(numbers[n]) ? null : numbers.slice(n, 2 * n),
      familiarity: Number.isNaN(numbers[2 * n]) ? null : numbers[2 * n],
      prices,
    };
  }

  nearest(signal, most) {
    const numbers = this.ask("nearest", signal, most);
    const found = [];
    for (let i = 0; i < numbers.length; i += 2) found.push({ index: numbers[i], alike: numbers[i + 1] });
    return found;
  }
}
