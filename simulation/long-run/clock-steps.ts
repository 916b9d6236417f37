/** Steps of all clocks. */
export class ClockSteps {
  readonly #steps: { readonly atMs: number; readonly aheadMs: number }[] = [];

  add(atMs: number, aheadMs: number): void {
    this.#steps.push({ atMs, aheadMs });
  }

  /** By how much all clocks were ahead of true time. */
  aheadMs(atMs: number): number {
    for (let index = this.#steps.length - 1; index >= 0; index -= 1) {
      const step = this.#steps[index]!;
      if (step.atMs <= atMs) return step.aheadMs;
    }
    return 0;
  }

  /** Sum of the sizes of all steps since a moment. Milliseconds. */
  sizeSince(sinceMs: number): number {
    let sizeMs = 0;
    for (let index = this.#steps.length - 1; index >= 0 && this.#steps[index]!.atMs > sinceMs; index -= 1) {
      sizeMs += Math.abs(this.#steps[index]!.aheadMs - (this.#steps[index - 1]?.aheadMs ?? 0));
    }
    return sizeMs;
  }
}
