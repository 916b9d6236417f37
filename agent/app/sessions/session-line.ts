/**
 * The line to the API, on which the agent learns at once that somebody wants exec, attach or port-forward. It is open
 * while a container runs. Each session has a connection of its own. An API that cannot upgrade connections refuses the
 * line; then it is tried once per hour.
 */

import type { Log } from '../../../shared/observability/log.ts';
import { lineMessageOf, linePath, type SessionRequest, sessionPath } from '../../../shared/sessions/session-request.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import type { SessionApi, SessionConnection } from '../../ports/session-api.ts';
import type { AgentTime, Fraction } from '../../ports/time.ts';
import { lineWaitMs, needsLine } from '../../rules/session-line.ts';
import { describeError } from '../describe-error.ts';
import { runSession, type SessionParts } from './run-session.ts';

/** Sessions at once. The API opens no more for one node. */
const SESSIONS_MAX = 400;
/** A line that lasted has not failed. Milliseconds. */
const LINE_LASTED_MS = 10_000;
/** A change of a container is seen at once. Milliseconds. */
const CHECK_EVERY_MS = 3_600_000;

export interface SessionLineDependencies extends SessionParts {
  readonly nodeName: string;
  readonly sessionApi: SessionApi;
  readonly runtime: Pick<PodRuntime, 'open' | 'readLog' | 'pods' | 'onChange'>;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly stop: AbortSignal;
}

export class SessionLine {
  readonly #dependencies: SessionLineDependencies;
  readonly #sessions = new Map<string, SessionConnection>();
  #opening = 0;
  #line: SessionConnection | undefined;
  #isUnneeded = false;
  #wake = new AbortController();

  constructor(dependencies: SessionLineDependencies) {
    this.#dependencies = dependencies;
    dependencies.runtime.onChange(() => void this.#onChange());
    dependencies.stop.addEventListener('abort', () => this.#close(), { once: true });
  }

  /** Until stopped. Never rejects. */
  async run(): Promise<void> {
    const { nodeName, sessionApi, time, fraction, log, stop } = this.#dependencies;
    let failures = 0;
    while (!stop.aborted) {
      this.#wake = new AbortController();
      if (!(await this.#isNeeded())) {
        await time.sleep(CHECK_EVERY_MS, AbortSignal.any([stop, this.#wake.signal]));
        continue;
      }
      const opening = await sessionApi.open(linePath(nodeName));
      const status = opening.kind === 'refused' ? opening.status : 0;
      if (opening.kind === 'opened') {
        const openedAtMs = time.monotonicMs();
        const isUnneeded = await this.#follow(opening.connection);
        if (isUnneeded || time.monotonicMs() - openedAtMs >= LINE_LASTED_MS) {
          failures = 0;
          continue;
        }
        // An API that closes each line at once, as for a second machine with the same key, is not asked without end.
      } else {
        log.debug('no line for sessions', {
          status,
          cause: opening.kind === 'failed' ? describeError(opening.cause) : undefined,
        });
      }
      await time.sleep(lineWaitMs(opening.kind, status, failures, fraction()), stop);
      failures += 1;
    }
  }

  async #isNeeded(): Promise<boolean> {
    return needsLine(await this.#dependencies.runtime.pods().catch(() => []));
  }

  async #onChange(): Promise<void> {
    this.#wake.abort();
    const line = this.#line;
    if (line === undefined || (await this.#isNeeded())) return;
    this.#isUnneeded = true;
    line.close();
  }

  /** Until it ends. Whether this side closed it, because nothing runs. */
  async #follow(line: SessionConnection): Promise<boolean> {
    const { stop } = this.#dependencies;
    this.#line = line;
    this.#isUnneeded = false;
    if (stop.aborted) line.close();
    for await (const bytes of line) {
      const message = lineMessageOf(new TextDecoder().decode(bytes));
      if (message === undefined) continue;
      if ('session' in message) void this.#answer(message.session);
      else this.#sessions.get(message.ended)?.destroy();
    }
    this.#line = undefined;
    return this.#isUnneeded;
  }

  /** Never rejects. */
  async #answer(request: SessionRequest): Promise<void> {
    const { nodeName, sessionApi, log, stop } = this.#dependencies;
    if (this.#opening + this.#sessions.size >= SESSIONS_MAX) return;
    this.#opening += 1;
    const opening = await sessionApi.open(sessionPath(nodeName, request.id));
    this.#opening -= 1;
    if (opening.kind !== 'opened') {
      log.warn('a session could not be opened', {
        podUid: request.podUid,
        cause: opening.kind === 'failed' ? describeError(opening.cause) : `status ${opening.status}`,
      });
      return;
    }
    const { connection } = opening;
    this.#sessions.set(request.id, connection);
    if (stop.aborted) connection.close();
    await runSession(connection, request, this.#dependencies).catch((error: unknown) =>
      log.error('a session failed', { podUid: request.podUid, error }),
    );
    connection.close();
    this.#sessions.delete(request.id);
  }

  #close(): void {
    this.#line?.close();
    for (const each of this.#sessions.values()) each.destroy();
  }
}
