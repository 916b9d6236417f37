/** What a replica asks its cluster: which one it is, lists of whole resources, and changes. */
import { jsonObjectIn } from '../../shared/access/bearer.ts';
import { NAMESPACES } from '../../shared/kinds/namespaces/resource.ts';
import type { StoredResource } from '../../shared/kinds/stored-resource.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { apiVersionOf, typed } from '../../shared/kubernetes/normal-form.ts';
import {
  CHANGE_READS,
  type ChangeCursor,
  type ChangeRead,
  type ChangesOfResource,
} from '../../shared/watches/change-read.ts';
import type { Upstream, UpstreamAnswer } from './upstream.ts';

/** The cluster answers within 29 s, or never. */
const ANSWER_MS = 30_000;
const PAGE_OBJECTS = 500;
/** Ten million objects, which no cluster has. */
const PAGES_MAX = 20_000;
/** A cluster that asks for more is asked again then. Milliseconds. */
const RETRY_AFTER_MAX_MS = 300_000;
/** Of the cluster's own words in a message, which is in a header of each read. */
const MESSAGE_LENGTH_MAX = 300;

/** The cluster answered, but not what was asked. The message says what it answered, for people. */
export class ClusterRefusal extends Error {
  override readonly name = 'ClusterRefusal';
  /** It asks to wait. Milliseconds; 0: it does not say how long. */
  readonly retryAfterMs: number;
  constructor(message: string, { retryAfterMs = 0, cause }: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

export interface ListedPage {
  readonly objects: readonly KubeObject[];
  /** Of the first page: every change up to it is in the pages, and later ones may be. */
  readonly through: number;
}

export interface ClusterReads {
  /** The uid of namespace kube-system: no two clusters have the same. */
  clusterUid(): Promise<string>;
  /**
   * By resource, in the order of the cursors. `consistent`: with everything that was committed before the call.
   * `clusterId`: absent in a cluster that does not say it.
   */
  changes(
    cursors: readonly ChangeCursor[],
    options?: { readonly consistent: boolean },
  ): Promise<{
    readonly outcomes: readonly ChangesOfResource[];
    readonly clusterId?: string;
    /** Absent in a cluster that does not say it. */
    readonly history?: string;
  }>;
  pages(resource: StoredResource): AsyncGenerator<ListedPage>;
  /** The part of the resource that the hub may follow. `onBounds`: with the last page. */
  partPages(resource: StoredResource, onBounds: (bounds: string) => void): AsyncGenerator<ListedPage>;
}

/** Each read @throws UpstreamUnreachable, ClusterRefusal */
export function clusterReads(upstream: Upstream): ClusterReads {
  const get = async (path: string): Promise<unknown> =>
    parsed(await upstream.send({ method: 'GET', path, headers: ACCEPT }, { timeoutMs: ANSWER_MS }), path);
  const typedBy = ({ group, version, kind }: StoredResource, objects: readonly KubeObject[]): readonly KubeObject[] =>
    objects.map((object) => typed(group, version, kind, object));

  async function changes(resources: readonly ChangeCursor[], { consistent } = { consistent: false }) {
    const spec = { resources, ...(consistent && { consistent }) };
    const body: ChangeRead = { apiVersion: apiVersionOf(CHANGE_READS), kind: CHANGE_READS.kind, spec };
    const path = pathOf(CHANGE_READS);
    const headers = { ...ACCEPT, 'content-type': 'application/json' };
    const answer = await upstream.send(
      { method: 'POST', path, headers, body: Buffer.from(JSON.stringify(body)) },
      { timeoutMs: ANSWER_MS },
    );
    const { resources: outcomes = [], clusterId, history } = (parsed(answer, path) as ChangeRead).status ?? {};
    if (outcomes.length !== resources.length) throw new ClusterRefusal('the cluster answered other resources');
    const odd = outcomes.find(
      (each) => (each.outcome === 'changes' || each.outcome === 'listed') && !isVersion(each.through),
    );
    if (odd !== undefined) throw new ClusterRefusal(`the changes of ${odd.resource} have no version`);
    return {
      outcomes,
      ...(typeof clusterId === 'string' && { clusterId }),
      ...(typeof history === 'string' && { history }),
    };
  }

  return {
    async clusterUid() {
      const { metadata } = (await get(`${pathOf(NAMESPACES)}/kube-system`)) as KubeObject;
      if (metadata?.uid === undefined) throw new ClusterRefusal('the namespace kube-system of the cluster has no uid');
      return metadata.uid;
    },
    changes,
    async *pages(stored) {
      let next = '';
      let through: number | undefined;
      for (let pages = 0; pages < PAGES_MAX; pages += 1) {
        const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`;
        const list = (await get(`${pathOf(stored)}?limit=${PAGE_OBJECTS}${more}`)) as ObjectList;
        const { resourceVersion } = list.metadata;
        if (!isVersion(resourceVersion)) throw new ClusterRefusal(`the list of ${stored.resource} has no version`);
        through ??= Number(resourceVersion);
        yield { objects: typedBy(stored, list.items), through };
        next = list.metadata.continue ?? '';
        if (next === '') return;
      }
      throw new ClusterRefusal(`the list of ${stored.resource} has more than ${PAGES_MAX} pages`);
    },
    async *partPages(stored, onBounds) {
      const { group, resource } = stored;
      let cursor: ChangeCursor = { group, resource, after: '0' };
      let through: number | undefined;
      for (let pages = 0; pages < PAGES_MAX; pages += 1) {
        const [outcome] = (await changes([cursor])).outcomes;
        if (outcome?.outcome !== 'listed') throw new ClusterRefusal(`what belongs to this site of ${resource} changed`);
        const { bounds, next } = outcome;
        through ??= Number(outcome.through);
        yield { objects: typedBy(stored, outcome.objects), through };
        if (next === undefined) return onBounds(bounds);
        cursor = { ...cursor, bounds, from: next };
      }
      throw new ClusterRefusal(`the list of ${resource} has more than ${PAGES_MAX} pages`);
    },
  };
}

interface ObjectList {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly KubeObject[];
}

/** It is stored as a cursor. The next read of changes would be refused with anything else. */
const isVersion = (text: unknown): boolean =>
  typeof text === 'string' && /^\d+$/.test(text) && Number.isSafeInteger(Number(text));

const ACCEPT = { accept: 'application/json' };

const pathOf = ({ group, version, resource }: Pick<StoredResource, 'group' | 'version' | 'resource'>): string =>
  group === '' ? `/api/${version}/${resource}` : `/apis/${group}/${version}/${resource}`;

function parsed({ status, headers, body }: UpstreamAnswer, path: string): unknown {
  const value = jsonObjectIn(body);
  if (status >= 200 && status < 300 && value !== undefined) return value;
  const seconds = Number(headers['retry-after'] ?? 0);
  const retryAfterMs = seconds > 0 ? Math.min(seconds * 1_000, RETRY_AFTER_MAX_MS) : 0;
  if (value === undefined)
    throw new ClusterRefusal(`the cluster answered ${status} without JSON to ${path}`, { retryAfterMs });
  const message = typeof value['message'] === 'string' ? value['message'].slice(0, MESSAGE_LENGTH_MAX) : path;
  throw new ClusterRefusal(`the cluster answered ${status}: ${message}`, { retryAfterMs });
}
