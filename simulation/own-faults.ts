/**
 * Faults of ours on virtual time, one after the other or two together: ticks that come late, twice, half or not at all,
 * a heartbeat path that loses requests, clocks that step, reads that are stale. They begin at ticks.
 */
export const FAULTS = [
  'missedTicks',
  'duplicateTicks',
  'lateTicks',
  'halfTicks',
  'ingestDown',
  'ingestLossy',
  'clockStep',
  'staleReads',
] as const;
export type FaultKind = (typeof FAULTS)[number];

interface Fault {
  readonly kind: FaultKind;
  readonly fromMs: number;
  readonly untilMs: number;
  /** Share of lost requests or ticks, or milliseconds of a step or delay. */
  readonly size: number;
}

export interface OwnFaultsOptions {
  readonly kinds: readonly FaultKind[];
  readonly random: () => number;
  readonly periodMs: number;
  /** Mean time from the end of a fault to the next one. Seconds. */
  readonly meanCalmSeconds: number;
  readonly startMs: number;
}

export class OwnFaults {
  readonly #options: OwnFaultsOptions;
  readonly #random: () => number;
  readonly counts = Object.fromEntries(FAULTS.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  /** What server clocks are ahead of true time, since a step. Milliseconds. */
  clockAheadMs = 0;
  #current: readonly Fault[] = [];
  #nextAtMs: number;

  constructor(options: OwnFaultsOptions) {
    this.#options = options;
    this.#random = options.random;
    this.#nextAtMs = options.startMs + this.#calm();
  }

  /** Whether the next fault begins at this tick. */
  isDue(tickMs: number): boolean {
    return tickMs >= this.#nextAtMs;
  }

  /** At each tick. */
  begin(tickMs: number): void {
    if (!this.isDue(tickMs)) return;
    const first = this.#newFault(tickMs);
    this.#current = this.#random() < 0.3 ? [first, this.#newFault(tickMs)] : [first];
    this.#nextAtMs = Math.max(...this.#current.map(({ untilMs }) => untilMs)) + this.#calm();
  }

  /** The size of a fault that is going on; undefined: it is not. */
  size(kind: FaultKind, nowMs: number): number | undefined {
    for (const each of this.#current) {
      if (each.kind === kind && nowMs >= each.fromMs && nowMs < each.untilMs) return each.size;
    }
    return undefined;
  }

  /** Whether one of so many attempts of a request arrives. */
  arrives(nowMs: number, tries: number): boolean {
    const loss = Math.max(this.size('ingestDown', nowMs) ?? 0, this.size('ingestLossy', nowMs) ?? 0);
    if (loss === 0) return true;
    for (let attempt = 0; attempt < tries; attempt += 1) if (this.#random() >= loss) return true;
    return false;
  }

  /** No request is lost now. */
  isPathClear(nowMs: number): boolean {
    return this.size('ingestDown', nowMs) === undefined && this.size('ingestLossy', nowMs) === undefined;
  }

  /** The faults that are going on, or have just ended. */
  names(): string {
    return this.#current
      .map(({ kind }) => kind)
      .sort()
      .join(' and ');
  }

  #calm(): number {
    return -Math.log(1 - this.#random()) * this.#options.meanCalmSeconds * 1_000;
  }

  #newFault(nowMs: number): Fault {
    const { kinds, periodMs } = this.#options;
    const kind = kinds[Math.floor(this.#random() * kinds.length)]!;
    this.counts[kind] += 1;
    const isLong = this.#random() < 0.2;
    const lengthMs = isLong ? 60_000 + this.#random() * 900_000 : 5_000 + this.#random() * 90_000;
    const untilMs = nowMs + lengthMs;
    switch (kind) {
      case 'missedTicks':
      case 'duplicateTicks':
      case 'halfTicks':
        return { kind, fromMs: nowMs, untilMs, size: 0.2 + 0.8 * this.#random() };
      case 'lateTicks':
        return {
          kind,
          fromMs: nowMs,
          untilMs,
          size: this.#random() < 0.5 ? periodMs * 0.9 * this.#random() : 60_000 * this.#random(),
        };
      case 'ingestDown':
        return { kind, fromMs: nowMs, untilMs, size: 1 };
      case 'ingestLossy':
        return { kind, fromMs: nowMs, untilMs, size: 0.1 + 0.85 * this.#random() };
      case 'staleReads':
        return { kind, fromMs: nowMs, untilMs, size: 1_000 * this.#random() };
      case 'clockStep':
        this.clockAheadMs += (this.#random() < 0.5 ? 1 : -1) * (this.#random() < 0.5 ? 5_000 : 60_000) * this.#random();
        return { kind, fromMs: nowMs, untilMs: nowMs, size: 0 };
    }
  }
}
