/**
 * The link of a hub to its cluster. Its troubles are its own; outages of the endpoint and of the sites concern it as
 * well. A request that the cluster has served may have no answer, or a late one.
 */
import { type Upstream, type UpstreamAnswer, UpstreamUnreachable } from '../server/hub/upstream.ts';
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/http.ts';
import { CHANGE_READS, type ChangeRead, type ChangesOfResource } from '../shared/watches/change-read.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import type { Functions } from './faults/processes.ts';
import type { HubLife } from './hub-process.ts';
import type { VirtualTime } from './virtual-time.ts';

const WAY_MIN_MS = 5;
const WAY_MAX_MS = 40;
/** Without a way, a request fails after this time. Milliseconds. */
const NO_WAY_MS = 3_000;
const LATE_MAX_MS = 40_000;
const RETRY_AFTER_MAX_SECONDS = 20;
/** Of the requests, on a bad link. */
const BAD_SHARE = 0.4;
/** Changes of an answer, where the cluster answers little at a time. */
const FEW_CHANGES_MAX = 8;
const CHANGE_READS_PATH = `/${CHANGE_READS.resource}`;
const OLDEST_VERSION = '1';
const encoder = new TextEncoder();

/** The API of the cluster, for hubs. */
export type ClusterApi = (request: HttpRequest) => Promise<HttpResponse>;

/** `cut`: nothing passes. `noAnswers`: requests do. `bad`: each request may have another fate. */
export type LinkTrouble = 'cut' | 'noAnswers' | 'bad';

export interface HubLinkOptions {
  readonly time: VirtualTime;
  /** With numbers for hubs alone. */
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly functions: Functions<ClusterApi>;
  /** A function of the cluster failed. */
  readonly onFault: (name: 'api', faults: readonly unknown[]) => void;
  /** A request had no answer, or one of the server's failures. */
  readonly onFailed: (what: string, status: number) => void;
  readonly onList: (resource: string) => void;
}

export class HubLink {
  readonly #options: HubLinkOptions;
  trouble: LinkTrouble | undefined;
  /** The cluster answers few changes at a time. That is no fault. */
  isNarrow = false;
  /** The log of the cluster has expired for the next request. */
  isExpired = false;

  constructor(options: HubLinkOptions) {
    this.#options = options;
  }

  /** For a process of the hub, with the credentials of `who`. */
  upstream(life: HubLife, who: string): Upstream {
    return {
      send: (request, { timeoutMs }) => life.call(() => this.#within(timeoutMs, this.#exchange(request, who))),
    };
  }

  #within(timeoutMs: number, exchange: Promise<UpstreamAnswer>): Promise<UpstreamAnswer> {
    return new Promise((resolve, reject) => {
      let isOver = false;
      this.#options.time.after(timeoutMs, () => {
        if (!isOver) reject(this.#unreachable(`no answer within ${timeoutMs} ms`));
      });
      exchange.then(resolve, reject).finally(() => {
        isOver = true;
      });
    });
  }

  #unreachable(why: string): UpstreamUnreachable {
    this.#options.onFailed(why, 0);
    return new UpstreamUnreachable(why);
  }

  async #exchange(request: Parameters<Upstream['send']>[0], who: string): Promise<UpstreamAnswer> {
    const { time, plan, fraction } = this.#options;
    const way = (): Promise<void> => time.sleep(WAY_MIN_MS + fraction() * (WAY_MAX_MS - WAY_MIN_MS));
    await way();
    const { trouble } = this;
    if (trouble === 'cut' || plan.severity('siteCut') > 0) {
      await time.sleep(NO_WAY_MS);
      throw this.#unreachable('the link is cut');
    }
    const fate = trouble === 'bad' && fraction() < BAD_SHARE ? fraction() : 1;
    if (fate < 0.4) return this.#refusal(fate);
    if (fate < 0.5) {
      await time.sleep(NO_WAY_MS);
      throw this.#unreachable('the request is lost');
    }
    if (plan.severity('apiOutage') > 0) {
      plan.count('apiOutage');
      return this.#failed({ status: 503, headers: {}, body: Buffer.from('{"message":"the endpoint is out"}') });
    }
    const answer = await this.#serve(request, who);
    if (trouble === 'noAnswers' || fate < 0.75) {
      await time.sleep(NO_WAY_MS);
      throw this.#unreachable('the answer is lost');
    }
    if (fate < 1) await time.sleep(fraction() ** 2 * LATE_MAX_MS);
    await way();
    return answer;
  }

  /** An answer of something before the API, or of the API under load. */
  #refusal(fate: number): UpstreamAnswer {
    const seconds = String(1 + Math.floor(this.#options.fraction() * RETRY_AFTER_MAX_SECONDS));
    const [status, body] =
      fate < 0.15
        ? [429, '{"kind":"Status","message":"too many requests"}']
        : fate < 0.3
          ? [503, '']
          : [502, '<html>bad gateway</html>'];
    const headers: Record<string, string> = fate < 0.25 ? { 'retry-after': seconds } : {};
    return this.#failed({ status, headers, body: Buffer.from(body) });
  }

  #failed(answer: UpstreamAnswer): UpstreamAnswer {
    this.#options.onFailed(answer.body.toString('utf8'), answer.status);
    return answer;
  }

  async #serve(
    { method, path: target, headers = {}, body }: Parameters<Upstream['send']>[0],
    who: string,
  ): Promise<UpstreamAnswer> {
    const { functions, onFault } = this.#options;
    const [path = '', search] = target.split('?', 2);
    const isChangeRead = path.endsWith(CHANGE_READS_PATH);
    const resource = path.slice(path.lastIndexOf('/') + 1);
    if (search?.startsWith('limit=') === true && !search.includes('continue')) this.#options.onList(resource);
    const request: HttpRequest = {
      method,
      path,
      query: new URLSearchParams(search),
      headers: { ...headers, authorization: `Bearer ${who}` },
      body: isChangeRead && this.isExpired ? this.#expired(body!) : (body ?? EMPTY),
      sourceIp: '192.0.2.2',
    };
    const outcome = await functions.invoke('api', who, (api) => api(request));
    if (outcome.kind !== 'done') {
      if (outcome.kind === 'failed') onFault('api', [outcome.error]);
      return this.#failed({ status: 503, headers: {}, body: Buffer.from(`{"message":"${outcome.kind}"}`) });
    }
    const { status, headers: answered, body: bytes } = outcome.value;
    const text = Buffer.from(typeof bytes === 'string' ? encoder.encode(bytes) : bytes);
    const answer = { status, headers: answered, body: text };
    if (status >= 500 || status === 429) return this.#failed(answer);
    return isChangeRead && this.isNarrow && status === 201 ? { ...answer, body: this.#narrow(text) } : answer;
  }

  /** The same cursors, as old as versions are: the cluster then answers `expired`, or what it has. */
  #expired(body: Buffer): Buffer {
    this.isExpired = false;
    const read = JSON.parse(body.toString('utf8')) as ChangeRead;
    const resources = read.spec.resources.map((each) => ({ ...each, after: OLDEST_VERSION }));
    return Buffer.from(JSON.stringify({ ...read, spec: { ...read.spec, resources } }));
  }

  /** What an answer without room for more says. */
  #narrow(body: Buffer): Buffer {
    const read = JSON.parse(body.toString('utf8')) as ChangeRead;
    const all = read.status!.resources.flatMap((each) => (each.outcome === 'changes' ? each.changes : [])).length;
    // Of thousands at once more, or the hub would be late without a fault.
    let room = 1 + Math.floor(this.#options.fraction() * Math.max(FEW_CHANGES_MAX, all / 4));
    const resources = read.status!.resources.map((each, index): ChangesOfResource => {
      if (each.outcome !== 'changes') return each;
      const { changes } = each;
      if (changes.length <= room) {
        room -= changes.length;
        return each;
      }
      const kept = changes.slice(0, room);
      room = 0;
      const through = kept.at(-1)?.object.metadata.resourceVersion ?? read.spec.resources[index]!.after;
      return { ...each, changes: kept, through, more: true };
    });
    return Buffer.from(JSON.stringify({ ...read, status: { resources } }));
  }
}

const EMPTY = new Uint8Array();
