/** The clocks of one machine: its uptime, which runs a little too fast or slow, and a wall clock that steps. */
import type { ClockReading } from '../agent/rules/offline-stop.ts';
import { hashOf, seededFraction } from './seeded-random.ts';

/** Two machines differ by less than CLOCK_RATE_ERROR of shared/kinds/pods/offline-stop.ts. */
const RATE_ERROR_MAX = 0.0004;

export class MachineTime {
  readonly #rate: number;
  #bootedAtMs = 0;
  #wallAheadMs = 0;

  constructor(seed: number, name: string) {
    this.#rate = 1 + (2 * seededFraction(hashOf(`${seed} rate of ${name}`))() - 1) * RATE_ERROR_MAX;
  }

  boot(nowMs: number): void {
    this.#bootedAtMs = nowMs;
  }

  step(byMs: number): void {
    this.#wallAheadMs += byMs;
  }

  at(nowMs: number): ClockReading {
    return {
      uptimeMs: Math.round((nowMs - this.#bootedAtMs) * this.#rate),
      wallMs: Math.round(nowMs + this.#wallAheadMs),
    };
  }
}
