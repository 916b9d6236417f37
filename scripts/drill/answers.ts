/** Requests that outlast a change of the build, and the time in which it answers none. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiAnswer, SendRequest } from '../../demo/fleet/api-client.ts';

const ASK_EVERY_MS = 100;
const AGAIN_MS = 500;
const ATTEMPTS_MAX = 60;
const PATH = '/api/v1/namespaces/default';

const hasAnswered = (answer: ApiAnswer): boolean =>
  answer.kind === 'answered' && answer.status < 500 && answer.status !== 429;

/** Sends again what has no answer: the drill itself must outlast each change, on a busy machine too. */
export function patiently(send: SendRequest): SendRequest {
  return async (request) => {
    let answer = await send(request);
    for (let attempt = 1; attempt < ATTEMPTS_MAX && !hasAnswered(answer); attempt += 1) {
      await pause(AGAIN_MS);
      answer = await send(request);
    }
    return answer;
  };
}

/** Asks the cluster the same again and again, and sums the time without an answer. */
export class Answers {
  readonly #send: SendRequest;
  #silentMs = 0;
  #silentFromMs: number | undefined;
  #isStopped = false;
  readonly #running: Promise<void>;

  constructor(send: SendRequest) {
    this.#send = send;
    this.#running = this.#ask();
  }

  /** Since the last call: from the first request without an answer until the next answer, summed. Seconds. */
  takeSilentSeconds(): number {
    const seconds = this.#silentMs / 1_000;
    this.#silentMs = 0;
    return seconds;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #ask(): Promise<void> {
    while (!this.#isStopped) {
      const sentMs = performance.now();
      const answer = await this.#send({ method: 'GET', path: PATH, urgent: true });
      if (!hasAnswered(answer)) this.#silentFromMs ??= sentMs;
      else if (this.#silentFromMs !== undefined) {
        this.#silentMs += performance.now() - this.#silentFromMs;
        this.#silentFromMs = undefined;
      }
      await pause(ASK_EVERY_MS);
    }
  }
}
