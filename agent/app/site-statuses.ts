/**
 * Statuses of this machine for the hub of its site (docs/hub.md), which shows them while the cluster cannot be reached.
 *
 * Nothing is sent to the hub instead of the cluster. A status that the cluster does not answer soon is sent to the hub
 * as well, and the loops repeat it at the cluster as without a hub. What the hub answers proves nothing, and nothing
 * depends on it.
 *
 * One request at a time, the newest status of each object. A hub that refuses, because it has not noticed yet that the
 * cluster cannot be reached, is asked again until the cluster answers, RETRIES_MAX times at most.
 */
import type { Log } from '../../shared/observability/log.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { AgentTime } from '../ports/time.ts';
import { answeredWith, describeAnswer, isTransient } from '../rules/kube-answer.ts';
import { nodePath } from '../rules/lease.ts';

/** How long the cluster may take to answer before the hub is sent the status as well. Milliseconds. */
const PATIENCE_MS = 1_000;
const HUB_TIMEOUT_MS = 5_000;
const RETRY_MS = 2_000;
/** About a minute: by then a hub has noticed a link that was cut. */
const RETRIES_MAX = 30;
/** The same status is sent again after this time: the hub may have been restarted. Milliseconds. */
const REPEAT_MS = 60_000;

/**
 * A hub verifies tokens of a machine without the cluster by the keys that the machine had when it last used the hub. So
 * it reads its Node there, again after this time. On AWS that is one request of the hub per hour and machine.
 * Milliseconds.
 */
const INTRODUCED_EVERY_MS = 3_600_000;
/** Until the hub has answered. Milliseconds. */
const INTRODUCED_AGAIN_MS = 10_000;

export interface SiteStatusesDependencies {
  readonly nodeName: string;
  /** A client of the hub. */
  readonly hub: KubeApi;
  readonly time: AgentTime;
  readonly log: Log;
  readonly stop: AbortSignal;
}

interface Waiting {
  readonly request: KubeRequest;
  retries: number;
}

export class SiteStatuses {
  readonly #dependencies: SiteStatusesDependencies;
  /** By path: what the hub has to be sent. */
  readonly #waiting = new Map<string, Waiting>();
  /** By path: what the hub accepted, and when. */
  readonly #accepted = new Map<string, { readonly text: string; readonly atMs: number }>();
  #isSending = false;

  constructor(dependencies: SiteStatusesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Keeps this machine known to the hub, until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { hub, time, nodeName, log } = this.#dependencies;
    let isKnown = false;
    while (!stop.aborted) {
      const answer = await hub.send({ method: 'GET', path: nodePath(nodeName), timeoutMs: HUB_TIMEOUT_MS });
      if (answeredWith(answer, 200) && !isKnown) log.info('the hub of the site knows this machine', { nodeName });
      isKnown ||= answeredWith(answer, 200);
      await time.sleep(answeredWith(answer, 200) ? INTRODUCED_EVERY_MS : INTRODUCED_AGAIN_MS, stop);
    }
  }

  /** The API of the cluster. Statuses that it does not answer are sent to the hub as well. */
  watching(api: KubeApi): KubeApi {
    return {
      send: (request) => {
        const asked = api.send(request);
        if (isStatus(request)) this.beside(asked, request.path, async () => request);
        return asked;
      },
      reconnect: () => api.reconnect(),
    };
  }

  /** `asked`: a request to the cluster. `report`: the status at `path` without an answer to it; undefined: none. */
  beside(asked: Promise<KubeAnswer>, path: string, report: () => Promise<KubeRequest | undefined>): void {
    const { time, stop, log } = this.#dependencies;
    const isReached = asked.then((answer) => !isTransient(answer));
    isReached.then((is) => is && this.#reached(path), ignored);
    const isLate = time.sleep(PATIENCE_MS, stop).then(() => false);
    Promise.race([isReached, isLate])
      .then(async (is) => {
        const request = is || stop.aborted ? undefined : await report();
        if (request !== undefined) this.#keep(request);
      })
      .catch((error: unknown) => log.warn('a status could not be prepared for the hub of the site', { error }));
  }

  /** The cluster has the status at this path. */
  #reached(path: string): void {
    this.#waiting.delete(path);
    this.#accepted.delete(path);
  }

  #keep(request: KubeRequest): void {
    const accepted = this.#accepted.get(request.path);
    const isSame = accepted?.text === JSON.stringify(request.body);
    if (isSame && this.#dependencies.time.monotonicMs() - accepted!.atMs < REPEAT_MS) return;
    this.#waiting.set(request.path, { request, retries: 0 });
    if (this.#isSending) return;
    this.#isSending = true;
    void this.#sendAll().finally(() => {
      this.#isSending = false;
    });
  }

  /** Until nothing waits. A client of the hub never rejects. */
  async #sendAll(): Promise<void> {
    const { time, stop } = this.#dependencies;
    while (this.#waiting.size > 0 && !stop.aborted) {
      let refused = 0;
      for (const [path, waiting] of [...this.#waiting]) {
        if (this.#waiting.get(path) === waiting && !(await this.#send(path, waiting))) refused += 1;
      }
      if (refused > 0) await time.sleep(RETRY_MS, stop);
    }
  }

  /** False: it may be accepted later. */
  async #send(path: string, waiting: Waiting): Promise<boolean> {
    const { hub, time, log } = this.#dependencies;
    const { request } = waiting;
    const answer = await hub.send({ ...request, timeoutMs: HUB_TIMEOUT_MS });
    if (this.#waiting.get(path) !== waiting) return true;
    if (answeredWith(answer, 202)) {
      this.#accepted.set(path, { text: JSON.stringify(request.body), atMs: time.monotonicMs() });
      this.#waiting.delete(path);
      return true;
    }
    waiting.retries += 1;
    // 409: the hub can reach the cluster, or has not noticed yet that it cannot.
    if ((isTransient(answer) || answeredWith(answer, 409)) && waiting.retries < RETRIES_MAX) return false;
    log.warn('the hub of the site does not show a status', { path, why: describeAnswer(answer) });
    this.#waiting.delete(path);
    return true;
  }
}

const isStatus = ({ method, path }: KubeRequest): boolean => method === 'PATCH' && path.endsWith('/status');
const ignored = (): void => {};
