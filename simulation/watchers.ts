/**
 * Clients that keep a picture of nodes and pods as informers do: they list, watch from the list's version, go on from
 * the last version they received, and list again where that is too old. Their watches are served by the real code, held
 * open or as long polls, in processes that are killed; the lines are cut, and the clients forget, hang up and stay
 * away.
 *
 * The watchers have random numbers of their own.
 */

import type { ServeWatch } from '../functions/watch/work.ts';
import type { Clock } from '../shared/clock.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/http.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../shared/store/layout.ts';
import { headersOf, OPERATOR } from './access.ts';
import type { Mark } from './coverage.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import type { Functions } from './faults/processes.ts';
import { LINE_MAX_MS, type Watcher, type WatchLaw } from './laws/watches.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface WatchProgram {
  /** Lists and long polls. */
  readonly api: (request: HttpRequest) => Promise<HttpResponse>;
  /** Watches held open. */
  readonly watch: ServeWatch;
  readonly clock: Clock;
}

/** The platform ends a function after this time. Milliseconds. */
const LIFETIME_MS = 900_000;
const WAY_MIN_MS = 5;
const AGAIN_MIN_MS = 100;
const AGAIN_MAX_MS = 1_000;
const PAGES_MAX = 1_000;
/** The share of lines at which it is cut, at the worst. */
const CUT_SHARE = 0.3;
/** At the end of a watch: the client forgets everything, or stays away for a while. */
const FORGETS_SHARE = 0.04;
const LEAVES_SHARE = 0.08;
const AWAY_MEAN_MS = 120_000;
/** The share of new clients with a version of a former life. */
const ANCIENT_SHARE = 0.15;
const ANCIENT_MS = 7_200_000;
/** Annotation of the bookmark that ends a state. */
const STATE_ENDS = 'k8s.io/initial-events-end';
const CONTENT = { accept: 'application/json' };
const EMPTY = new Uint8Array();
const decoder = new TextDecoder();

interface Client extends Watcher {
  readonly path: string;
  readonly fieldSelector: string | undefined;
  /** A watch held open, or long polls. */
  readonly polls: boolean;
  readonly bookmarks: boolean;
  /** The state comes by the watch itself. */
  readonly streamsState: boolean;
  version: string | undefined;
}

interface Line {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: KubeObject & { readonly code?: number };
}

interface List {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly KubeObject[];
}

interface WatchersOptions {
  readonly functions: Functions<WatchProgram>;
  readonly law: WatchLaw;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly hit: (mark: Mark) => void;
  readonly log: (subject: string, text: string) => void;
  readonly onFault: (name: 'watch', faults: readonly unknown[]) => void;
}

export function startWatchers(options: WatchersOptions): void {
  new Watchers(options).start();
}

class Watchers {
  readonly #options: WatchersOptions;
  readonly #clients: number;

  constructor(options: WatchersOptions) {
    this.#options = options;
    this.#clients = 3 + Math.floor(this.#options.fraction() * 4);
  }

  start(): void {
    for (let index = 1; index <= this.#clients; index += 1) {
      const client = this.#createClient(index);
      this.#options.law.follow(client);
      void this.#live(client);
    }
  }

  #chance(share: number): boolean {
    return this.#options.fraction() < share;
  }

  #between(least: number, most: number): number {
    return least + this.#options.fraction() * (most - least);
  }

  #delay(): Promise<void> {
    return this.#options.time.sleep(this.#between(WAY_MIN_MS, LINE_MAX_MS));
  }

  #createClient(index: number): Client {
    const isOfNodes = this.#chance(0.5);
    const [fieldSelector, selects] = selectionOf(isOfNodes, this.#options.fraction());
    const bookmarks = this.#chance(0.7);
    return {
      name: `watcher-${index}`,
      resource: isOfNodes ? 'nodes' : 'pods',
      selects,
      path: isOfNodes ? '/api/v1/nodes' : '/api/v1/pods',
      fieldSelector,
      polls: this.#chance(0.35),
      bookmarks,
      streamsState: bookmarks && this.#chance(0.4),
      version: undefined,
    };
  }

  #requestOf(client: Client, query: Readonly<Record<string, string>>): HttpRequest {
    return {
      method: 'GET',
      path: client.path,
      query: new URLSearchParams({
        ...(client.fieldSelector === undefined ? {} : { fieldSelector: client.fieldSelector }),
        ...query,
      }),
      headers: { ...headersOf(OPERATOR), ...CONTENT },
      body: EMPTY,
      sourceIp: '192.0.2.1',
    };
  }

  /** What a process makes of a request; undefined when it died, failed, or the endpoint is out. */
  async #request<T>(run: (program: WatchProgram) => Promise<T>): Promise<T | undefined> {
    await this.#delay();
    if (this.#options.plan.severity('apiOutage') > 0) {
      this.#options.plan.count('apiOutage');
      return undefined;
    }
    const outcome = await this.#options.functions.invoke('watch', OPERATOR, run);
    if (outcome.kind === 'done') return outcome.value;
    if (outcome.kind === 'failed') this.#options.onFault('watch', [outcome.error]);
    else this.#options.hit('watch:killed');
    return undefined;
  }

  async #list(client: Client): Promise<void> {
    const limit: Record<string, string> = this.#chance(0.4)
      ? { limit: String(2 + Math.floor(this.#options.fraction() * 6)) }
      : {};
    const objects: KubeObject[] = [];
    let token: Record<string, string> = {};
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answer = await this.#request(({ api }) => api(this.#requestOf(client, { ...limit, ...token })));
      if (answer?.status !== 200) return;
      this.#options.law.onPage(client);
      const { metadata, items } = JSON.parse(textOf(answer)) as List;
      objects.push(...items);
      if (metadata.continue === undefined || metadata.continue === '') {
        this.#learnState(client, metadata.resourceVersion, objects);
        return;
      }
      token = { continue: metadata.continue };
      this.#options.hit('watch:pages');
      await this.#delay();
    }
  }

  #learnState(client: Client, version: string, objects: readonly KubeObject[]): void {
    client.version = version;
    this.#options.log(client.name, `has ${objects.length} ${client.resource} at ${version}`);
    this.#options.law.onListed(client, version, objects);
  }

  #forget(client: Client): void {
    client.version = undefined;
    this.#options.law.onForgot(client);
  }

  /** Processes one line; returns whether the watch continues. `state`: the initial objects, until they are complete. */
  #receive(client: Client, { type, object }: Line, state: KubeObject[] | undefined): boolean {
    this.#options.law.onLine(client);
    const version = object.metadata?.resourceVersion ?? '';
    if (type === 'ERROR') {
      if (object.code === 410) {
        this.#options.hit('watch:expired');
        this.#options.law.onExpired(client);
        this.#options.log(client.name, `receives Expired for version ${client.version}`);
        this.#forget(client);
      }
      return false;
    }
    if (client.version === undefined) {
      // The client does as an informer: another bookmark does not say that the state is whole.
      if (type !== 'BOOKMARK') state!.push(object);
      else if (object.metadata.annotations?.[STATE_ENDS] === 'true') {
        this.#options.hit('watch:state');
        this.#learnState(client, version, state!);
      }
      return true;
    }
    client.version = version;
    if (type === 'BOOKMARK') {
      this.#options.hit('watch:bookmark');
      this.#options.law.onBookmark(client, version);
    } else {
      this.#options.hit('watch:event');
      this.#options.law.onEvent(client, type, object);
    }
    return true;
  }

  #isCut(): boolean {
    if (!this.#options.plan.strikes('lostBeats', CUT_SHARE)) return false;
    this.#options.hit('watch:cut');
    return true;
  }

  /**
   * With `heldChunks` as through a function URL that holds each chunk until the next one is written
   * (docs/decisions/0053-padded-streams.md). Without padding a change would be received with the next one, later than
   * L9 allows.
   */
  async *#delivered(chunks: AsyncIterable<string>): AsyncGenerator<string> {
    const { plan } = this.#options;
    if (!plan.has('heldChunks')) {
      yield* chunks;
      return;
    }
    let held = '';
    for await (const chunk of chunks) {
      if (held !== '') yield held;
      held = chunk;
      plan.count('heldChunks');
    }
    if (held !== '') yield held;
  }

  async #watch(client: Client): Promise<void> {
    const request = this.#requestOf(client, {
      watch: '1',
      ...(client.bookmarks ? { allowWatchBookmarks: 'true' } : {}),
      ...(client.version === undefined
        ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
        : { resourceVersion: client.version }),
      timeoutSeconds: String(Math.floor(this.#between(20, 400))),
    });
    const state = client.version === undefined ? [] : undefined;
    if (client.version !== undefined) this.#options.hit('watch:resumed');
    if (client.polls) {
      const answer = await this.#request(({ api }) => api(request));
      if (answer === undefined || this.#isCut()) return;
      this.#options.hit('watch:poll');
      await this.#delay();
      if (answer.status === 422 && state !== undefined) {
        // The state is too large for one response. client-go lists after that (cache/reflector.go, watchList).
        this.#options.log(client.name, 'lists, because the state is too large for a watch');
        await this.#list(client);
        return;
      }
      if (answer.status !== 200) {
        this.#receive(client, { type: 'ERROR', object: JSON.parse(textOf(answer)) as Line['object'] }, state);
        return;
      }
      for (const line of textOf(answer).split('\n')) {
        if (line !== '' && !this.#receive(client, JSON.parse(line) as Line, state)) return;
      }
      return;
    }
    await this.#request(async ({ watch: serve, clock }) => {
      const { lines } = await serve(request, clock.nowMs() + LIFETIME_MS);
      if (lines === undefined) return;
      for await (const part of this.#delivered(lines)) {
        for (const line of part.split('\n')) {
          if (line.trim() === '') continue;
          await this.#delay();
          if (this.#isCut() || !this.#receive(client, JSON.parse(line) as Line, state)) return;
        }
      }
    });
  }

  async #live(client: Client): Promise<void> {
    if (this.#chance(ANCIENT_SHARE)) {
      client.version = String((this.#options.time.nowMs() - ANCIENT_MS) * RESOURCE_VERSIONS_PER_MS);
      this.#options.law.onAncient(client, client.version);
    }
    for (;;) {
      await this.#options.time.sleep(this.#between(AGAIN_MIN_MS, AGAIN_MAX_MS));
      if (client.version === undefined && !client.streamsState) await this.#list(client);
      else await this.#watch(client);
      if (this.#chance(FORGETS_SHARE)) this.#forget(client);
      if (!this.#chance(LEAVES_SHARE)) continue;
      this.#options.law.onAway(client, true);
      await this.#options.time.sleep(-Math.log(1 - this.#options.fraction()) * AWAY_MEAN_MS);
      this.#options.law.onAway(client, false);
    }
  }
}

/** A field selector and its meaning, independent of the code under test. */
function selectionOf(isOfNodes: boolean, what: number): [string | undefined, (object: KubeObject) => boolean] {
  if (what < 0.4) return [undefined, () => true];
  if (isOfNodes) return ['metadata.name=m-1', ({ metadata }) => metadata.name === 'm-1'];
  if (what < 0.6) return ['spec.nodeName=m-0', ({ spec }) => spec?.['nodeName'] === 'm-0'];
  return ['status.phase!=Succeeded', ({ status }) => status?.['phase'] !== 'Succeeded'];
}

const textOf = ({ body }: HttpResponse): string => (typeof body === 'string' ? body : decoder.decode(body));
