import type { AgentTime } from '../../ports/time.ts';
import { clockOffsetMs } from '../../rules/node-token.ts';

/**
 * The server's clock, which dates our tokens. It is the uptime of the machine plus the offset from the server's last
 * answer, so setting the machine's clock changes nothing, and a suspend makes no difference to the server.
 */
export class ServerClock {
  readonly #time: Pick<AgentTime, 'nowMs' | 'uptimeMs'>;
  /** Wall clock minus uptime at the start of the agent. */
  readonly #startMs: number;
  #offsetMs = 0;

  constructor(time: Pick<AgentTime, 'nowMs' | 'uptimeMs'>) {
    this.#time = time;
    this.#startMs = time.nowMs() - time.uptimeMs();
  }

  /** Milliseconds since the Unix epoch. */
  nowMs(): number {
    return this.#ownMs() + this.#offsetMs;
  }

  /** By how much the server's clock is ahead of ours. Milliseconds. */
  offsetMs(): number {
    return this.#offsetMs;
  }

  /** @param serverTimeMs the time in an answer of the server, milliseconds since the Unix epoch */
  observe(serverTimeMs: number): void {
    this.#offsetMs = clockOffsetMs(serverTimeMs, this.#ownMs());
  }

  #ownMs(): number {
    return this.#startMs + this.#time.uptimeMs();
  }
}
