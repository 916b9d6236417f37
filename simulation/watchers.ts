/**
 * Clients that keep a picture of nodes and pods as informers do: they list, watch from the list's version, go on from the last
 * version they were told, and list again where that is too old. Their watches are served by the real code, held open or as
 * long polls, in processes that are killed; the lines are cut, and the clients forget, hang up and stay away.
 *
 * Nothing here draws from the numbers that anything else goes by.
 */

import type { ServeWatch } from '../shared/api/watch/serve-watch.ts';
import type { KubeObject } from '../shared/kube/types.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { HttpRequest, HttpResponse } from '../shared/ports/http.ts';
import { headersOf, OPERATOR } from './access.ts';
import type { Mark } from './coverage.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import type { Functions } from './faults/processes.ts';
import { LINE_MAX_MS, VERSIONS_PER_MS, type Watcher, type WatchLaw } from './laws/watches.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface WatchProgram {
  /** Lists and long polls. */
  readonly api: (request: HttpRequest) => Promise<HttpResponse>;
  /** Watches held open. */
  readonly watch: ServeWatch;
  readonly clock: Clock;
}

/** As the platform ends a function. Milliseconds. */
const LIFETIME_MS = 900_000;
const WAY_MIN_MS = 5;
const AGAIN_MIN_MS = 100;
const AGAIN_MAX_MS = 1_000;
const PAGES_MAX = 1_000;
/** Of lines, at the worst. */
const CUT_SHARE = 0.3;
/** At the end of a watch: the client forgets everything, or stays away for a while. */
const FORGETS_SHARE = 0.04;
const LEAVES_SHARE = 0.08;
const AWAY_MEAN_MS = 120_000;
/** Of new clients, those with a version of a former life. */
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

export function startWatchers(options: {
  readonly functions: Functions<WatchProgram>;
  readonly law: WatchLaw;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly hit: (mark: Mark) => void;
  readonly tell: (subject: string, text: string) => void;
  readonly onFault: (name: 'watch', faults: readonly unknown[]) => void;
}): void {
  const { functions, law, time, plan, fraction, hit, tell, onFault } = options;
  const chance = (share: number): boolean => fraction() < share;
  const between = (least: number, most: number): number => least + fraction() * (most - least);
  const way = (): Promise<void> => time.sleep(between(WAY_MIN_MS, LINE_MAX_MS));

  function make(index: number): Client {
    const isOfNodes = chance(0.5);
    const [fieldSelector, selects] = selectionOf(isOfNodes, fraction());
    const bookmarks = chance(0.7);
    return {
      name: `watcher-${index}`,
      resource: isOfNodes ? 'nodes' : 'pods',
      selects,
      path: isOfNodes ? '/api/v1/nodes' : '/api/v1/pods',
      fieldSelector,
      polls: chance(0.35),
      bookmarks,
      streamsState: bookmarks && chance(0.4),
      version: undefined,
    };
  }

  const requestOf = (client: Client, query: Readonly<Record<string, string>>): HttpRequest => ({
    method: 'GET',
    path: client.path,
    query: new URLSearchParams({
      ...(client.fieldSelector === undefined ? {} : { fieldSelector: client.fieldSelector }),
      ...query,
    }),
    headers: { ...headersOf(OPERATOR), ...CONTENT },
    body: EMPTY,
    sourceIp: '192.0.2.1',
  });

  /** What a process makes of a request; undefined when it died, failed, or the endpoint is out. */
  async function ask<T>(run: (program: WatchProgram) => Promise<T>): Promise<T | undefined> {
    await way();
    if (plan.severity('apiOutage') > 0) {
      plan.count('apiOutage');
      return undefined;
    }
    const outcome = await functions.invoke('watch', OPERATOR, run);
    if (outcome.kind === 'done') return outcome.value;
    if (outcome.kind === 'failed') onFault('watch', [outcome.error]);
    else hit('watch:killed');
    return undefined;
  }

  async function list(client: Client): Promise<void> {
    const limit: Record<string, string> = chance(0.4) ? { limit: String(2 + Math.floor(fraction() * 6)) } : {};
    const objects: KubeObject[] = [];
    let token: Record<string, string> = {};
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answer = await ask(({ api }) => api(requestOf(client, { ...limit, ...token })));
      if (answer?.status !== 200) return;
      law.onPage(client);
      const { metadata, items } = JSON.parse(textOf(answer)) as List;
      objects.push(...items);
      if (metadata.continue === undefined || metadata.continue === '') {
        learnState(client, metadata.resourceVersion, objects);
        return;
      }
      token = { continue: metadata.continue };
      hit('watch:pages');
      await way();
    }
  }

  function learnState(client: Client, version: string, objects: readonly KubeObject[]): void {
    client.version = version;
    tell(client.name, `has ${objects.length} ${client.resource} at ${version}`);
    law.onListed(client, version, objects);
  }

  function forget(client: Client): void {
    client.version = undefined;
    law.onForgot(client);
  }

  /** Takes what it is told; answers whether the watch goes on. `state`: what it began with, until that ends. */
  function take(client: Client, { type, object }: Line, state: KubeObject[] | undefined): boolean {
    law.onLine(client);
    const version = object.metadata?.resourceVersion ?? '';
    if (type === 'ERROR') {
      if (object.code === 410) {
        hit('watch:expired');
        law.onExpired(client);
        tell(client.name, `is told that ${client.version} is too old`);
        forget(client);
      }
      return false;
    }
    if (client.version === undefined) {
      // As an informer does: another bookmark does not say that the state is whole.
      if (type !== 'BOOKMARK') state!.push(object);
      else if (object.metadata.annotations?.[STATE_ENDS] === 'true') {
        hit('watch:state');
        learnState(client, version, state!);
      }
      return true;
    }
    client.version = version;
    if (type === 'BOOKMARK') {
      hit('watch:bookmark');
      law.onBookmark(client, version);
    } else {
      hit('watch:event');
      law.onEvent(client, type, object);
    }
    return true;
  }

  const isCut = (): boolean => {
    if (!plan.strikes('lostBeats', CUT_SHARE)) return false;
    hit('watch:cut');
    return true;
  };

  async function watch(client: Client): Promise<void> {
    const request = requestOf(client, {
      watch: '1',
      ...(client.bookmarks ? { allowWatchBookmarks: 'true' } : {}),
      ...(client.version === undefined
        ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
        : { resourceVersion: client.version }),
      timeoutSeconds: String(Math.floor(between(20, 400))),
    });
    const state = client.version === undefined ? [] : undefined;
    if (client.version !== undefined) hit('watch:resumed');
    if (client.polls) {
      const answer = await ask(({ api }) => api(request));
      if (answer === undefined || isCut()) return;
      hit('watch:poll');
      await way();
      if (answer.status !== 200) {
        take(client, { type: 'ERROR', object: JSON.parse(textOf(answer)) as Line['object'] }, state);
        return;
      }
      for (const line of textOf(answer).split('\n')) {
        if (line !== '' && !take(client, JSON.parse(line) as Line, state)) return;
      }
      return;
    }
    await ask(async ({ watch: serve, clock }) => {
      const { lines } = await serve(request, clock.nowMs() + LIFETIME_MS);
      if (lines === undefined) return;
      for await (const line of lines) {
        await way();
        if (isCut() || !take(client, JSON.parse(line) as Line, state)) return;
      }
    });
  }

  async function live(client: Client): Promise<void> {
    if (chance(ANCIENT_SHARE)) {
      client.version = String((time.nowMs() - ANCIENT_MS) * VERSIONS_PER_MS);
      law.onAncient(client, client.version);
    }
    for (;;) {
      await time.sleep(between(AGAIN_MIN_MS, AGAIN_MAX_MS));
      if (client.version === undefined && !client.streamsState) await list(client);
      else await watch(client);
      if (chance(FORGETS_SHARE)) forget(client);
      if (!chance(LEAVES_SHARE)) continue;
      law.onAway(client, true);
      await time.sleep(-Math.log(1 - fraction()) * AWAY_MEAN_MS);
      law.onAway(client, false);
    }
  }

  const clients = 3 + Math.floor(fraction() * 4);
  for (let index = 1; index <= clients; index += 1) {
    const client = make(index);
    law.follow(client);
    void live(client);
  }
}

/** Fields that a selector names, and what that means, told apart from the code that is watched. */
function selectionOf(isOfNodes: boolean, what: number): [string | undefined, (object: KubeObject) => boolean] {
  if (what < 0.4) return [undefined, () => true];
  if (isOfNodes) return ['metadata.name=m-1', ({ metadata }) => metadata.name === 'm-1'];
  if (what < 0.6) return ['spec.nodeName=m-0', ({ spec }) => spec?.['nodeName'] === 'm-0'];
  return ['status.phase!=Succeeded', ({ status }) => status?.['phase'] !== 'Succeeded'];
}

const textOf = ({ body }: HttpResponse): string => (typeof body === 'string' ? body : decoder.decode(body));
