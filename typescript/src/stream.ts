// What a run writes and displays, until it is taken.

import type { Connection, Listener } from "./connection.js";
import type { Display, Output } from "./execution.js";

/** How many bytes wait to be taken before the server is read no further. */
const MOST_BYTES = 1 << 20;

/** The items of a run that are not taken yet, in order. */
export class Stream implements AsyncIterable<Output | Display>, Listener {
  readonly isStream = true;
  readonly #connection: Connection;
  readonly #items: { item: Output | Display; bytes: number }[] = [];
  #bytes = 0;
  #hasEnded = false;
  #isPausing = false;
  #wake: (() => void) | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Adds an item. */
  add(item: Output | Display): void {
    const bytes = size(item);
    this.#items.push({ item, bytes });
    this.#bytes += bytes;
    if (this.#bytes > MOST_BYTES && !this.#isPausing) {
      this.#isPausing = true;
      this.#connection.pause();
    }
    this.#wake?.();
  }

  /** Nothing more comes. */
  readonly end = (): void => {
    this.#hasEnded = true;
    this.#wake?.();
  };

  /** Nobody takes anything any more. */
  close(): void {
    this.#items.length = this.#bytes = 0;
    this.#goOn();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Output | Display> {
    for (;;) {
      const next = this.#items.shift();
      if (next !== undefined) {
        this.#bytes -= next.bytes;
        if (this.#bytes <= MOST_BYTES / 2) this.#goOn();
        yield next.item;
      } else if (this.#hasEnded) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
    }
  }

  #goOn(): void {
    if (this.#isPausing) this.#connection.goOn();
    this.#isPausing = false;
  }
}

function size(item: Output | Display): number {
  if (item.kind === "output") return item.text.length;
  return Object.values(item.data).reduce((all, part) => all + part.length, 0);
}
