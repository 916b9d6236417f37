/**
 * The link of one machine. Its two directions fail apart: in a cut requests may arrive for some seconds without their
 * answers, and answers may arrive while no request does. An answer that the link holds arrives late, and no client of
 * the simulation gives up on it: the rules of the machine must hold without a time limit of requests.
 */
import type { EndpointAnswer } from './endpoint.ts';
import { NO_ANSWER } from './kube-requests.ts';
import { never, type VirtualTime } from './virtual-time.ts';

/** Request timeout of a machine where its requests do not leave. Milliseconds. */
const TIMEOUT_MS = 3_000;
/** An answer that was held arrives so long after answers pass again. Milliseconds. */
export const ANSWER_LATE_MAX_MS = 120_000;

/** Epoch milliseconds. */
export interface LinkCut {
  readonly answersFromMs: number;
  readonly answersUntilMs: number;
  readonly requestsFromMs: number;
  readonly untilMs: number;
}

export class MachineLink {
  readonly #time: VirtualTime;
  readonly #fraction: () => number;
  #cut: LinkCut | undefined;

  constructor(time: VirtualTime, fraction: () => number) {
    this.#time = time;
    this.#fraction = fraction;
  }

  /** It replaces an earlier cut. */
  cut(cut: LinkCut): void {
    this.#cut = cut;
  }

  get isCut(): boolean {
    const nowMs = this.#time.nowMs();
    return this.#cut !== undefined && nowMs >= this.#cut.answersFromMs && nowMs < this.#cut.untilMs;
  }

  /** @param isGone whether the client stopped in the meantime: its requests then never return */
  async pass(send: () => Promise<EndpointAnswer>, isGone: () => boolean): Promise<EndpointAnswer> {
    const cut = this.#cut;
    const sentAtMs = this.#time.nowMs();
    if (cut !== undefined && sentAtMs >= cut.requestsFromMs && sentAtMs < cut.untilMs) {
      await this.#time.sleep(TIMEOUT_MS);
      return isGone() ? never() : NO_ANSWER;
    }
    const answer = await send();
    const held = this.#cut;
    const nowMs = this.#time.nowMs();
    if (held !== undefined && nowMs >= held.answersFromMs && nowMs < held.answersUntilMs) {
      await this.#time.sleep(held.answersUntilMs - nowMs + this.#fraction() * ANSWER_LATE_MAX_MS);
    }
    return isGone() ? never() : answer;
  }
}
