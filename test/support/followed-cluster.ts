/** A cluster in memory and a replica that follows it, on one virtual clock. The link between them can be cut. */
import { openReplica, type Replica } from '../../server/hub/replica.ts';
import { type Upstream, UpstreamUnreachable } from '../../server/hub/upstream.ts';
import type { Clock } from '../../shared/clock.ts';
import { storedResources } from '../../shared/kinds/resources.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type ApiInMemory, apiInMemory } from './api-in-memory.ts';
import { lateReads } from './late-reads.ts';

const HUB_TOKEN = 'hub';

export interface FollowedCluster {
  readonly api: ApiInMemory;
  /** Of the replicas. */
  readonly clock: Clock;
  /** The clock of the cluster is ahead of it by this. */
  skew(milliseconds: number): void;
  /** How many requests the replicas have sent. */
  requests(): number;
  /** What those requests consumed of the tables of the cluster. */
  units(): { readonly readUnits: number; readonly writeUnits: number };
  cut(isCut: boolean): void;
  /** From now on, what the cluster reads without consistency is that of now. */
  freezeReads(): void;
  /** Another cluster answers at its address, and no request fails. */
  replaceBy(other: FollowedCluster): void;
  /** The hub may not read these. */
  forbid(resources: readonly string[]): Promise<void>;
  /** The hub may follow only what belongs to these nodes, and what is of no node. */
  bindTo(nodeNames: readonly string[]): Promise<void>;
  /** Deletes what has expired in the tables of the cluster, as time to live does. */
  expire(): void;
  /** `onChanged`: the change log of a resource of the copy has changed. */
  follow(items: ItemStore, random?: () => number, onChanged?: (resource: string) => void): Promise<Followed>;
}

export interface Followed {
  readonly replica: Replica;
  /** Resources with changes in their log, in order; emptied by the caller. */
  readonly changed: string[];
  readonly warnings: string[];
  /** Time passes, and the rounds that are due. */
  advance(milliseconds: number): Promise<void>;
  /** Resolves when the replica waits for the time of its next round. */
  settled(): Promise<void>;
}

/** `uuid` absent: two clusters have the same uids. */
export async function followedCluster(options: { readonly uuid?: () => string } = {}): Promise<FollowedCluster> {
  let nowMs = Date.UTC(2026, 0, 1);
  let clusterSkewMs = 0;
  const hubClock: Clock = { nowMs: () => nowMs };
  let isAsked = false;
  const units = { readUnits: 0, writeUnits: 0 };
  const memory = memoryItemStore({
    onConsumed({ readUnits, writeUnits }) {
      if (!isAsked) return;
      units.readUnits += readUnits;
      units.writeUnits += writeUnits;
    },
  });
  const { items: tables, freeze } = lateReads(memory);
  const api = apiInMemory({
    ...options,
    items: tables,
    users: { [HUB_TOKEN]: { name: 'hub', groups: [] } },
    clock: { nowMs: () => nowMs + clusterSkewMs },
  });
  let isCut = false;
  let answering = api;
  let requests = 0;
  await allow(api, ['*']);
  await api.send('POST', `${RBAC}/clusterrolebindings`, {
    body: {
      metadata: { name: 'hub' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'hub' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'hub' }],
    },
  });
  const upstream: Upstream = {
    async send({ method, path, headers = {}, body }) {
      if (isCut) throw new UpstreamUnreachable('the link is cut');
      requests += 1;
      isAsked = true;
      const answer = await answering.send(method, path, {
        headers: { ...headers, authorization: `Bearer ${HUB_TOKEN}` },
        ...(body === undefined ? {} : { body }),
      });
      isAsked = false;
      return { status: answer.code, headers: answer.headers, body: Buffer.from(answer.bytes) };
    },
  };
  return {
    api,
    clock: hubClock,
    skew(milliseconds) {
      clusterSkewMs = milliseconds;
    },
    requests: () => requests,
    units: () => ({ ...units }),
    cut(next) {
      isCut = next;
    },
    freezeReads: freeze,
    replaceBy(other) {
      answering = other.api;
    },
    async forbid(forbidden) {
      const allowed = storedResources
        .map(({ resource }) => resource)
        .filter((resource) => !forbidden.includes(resource));
      await allow(api, allowed);
    },
    async bindTo(nodeNames) {
      const { nodes: _, ...others } = Object.fromEntries(storedResources.map(({ resource }) => [resource, true]));
      const allowed = Object.keys(others).filter((each) => !['pods', 'configmaps', 'secrets'].includes(each));
      await allow(api, allowed, [
        {
          apiGroups: [''],
          resources: ['nodes', 'nodes/pods', 'nodes/configmaps', 'nodes/secrets'],
          resourceNames: nodeNames,
          verbs: ['get', 'list', 'watch'],
        },
      ]);
    },
    expire() {
      for (const table of ['objects', 'control', 'health'] as const) memory.expire(table, nowMs / 1_000);
    },
    async follow(items, random = () => 0.5, onChanged = () => {}) {
      const changed: string[] = [];
      const warnings: string[] = [];
      let waiting: { readonly untilMs: number; readonly end: () => void } | undefined;
      const onWaiting: (() => void)[] = [];
      const settled = (): Promise<void> =>
        waiting === undefined ? new Promise((resolve) => onWaiting.push(resolve)) : Promise.resolve();
      const replica = await openReplica({
        items,
        upstream,
        clock: hubClock,
        random: { fraction: random },
        pause: (milliseconds, stopped) =>
          new Promise<void>((resolve) => {
            const end = (): void => {
              stopped.removeEventListener('abort', end);
              waiting = undefined;
              resolve();
            };
            waiting = { untilMs: Math.ceil(nowMs + milliseconds), end };
            if (stopped.aborted) end();
            else stopped.addEventListener('abort', end, { once: true });
            for (const each of onWaiting.splice(0)) each();
          }),
        startTimeLimit: () => ({ reached: new Promise(() => {}), cancel: () => {} }),
        log: {
          debug: () => {},
          info: () => {},
          warn: (message, fields) => warnings.push(`${message} ${String(fields?.['error'] ?? '')}`),
          error: (message) => warnings.push(message),
        },
        onChanged(resource) {
          changed.push(resource);
          onChanged(resource);
        },
      });
      await settled();
      return {
        replica,
        changed,
        warnings,
        settled,
        async advance(milliseconds) {
          const endMs = nowMs + milliseconds;
          while (waiting !== undefined && waiting.untilMs <= endMs) {
            nowMs = Math.max(nowMs, waiting.untilMs);
            waiting.end();
            await settled();
          }
          nowMs = endMs;
        },
      };
    },
  };
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

/** What the hub may read: the rules of its ClusterRole. */
async function allow(api: ApiInMemory, resources: readonly string[], more: readonly object[] = []): Promise<void> {
  const body = {
    metadata: { name: 'hub' },
    rules: [
      { apiGroups: ['*'], resources, verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['nodekeeper.dev'], resources: ['changereads'], verbs: ['create'] },
      ...more,
    ],
  };
  const updated = await api.send('PUT', `${RBAC}/clusterroles/hub`, { body });
  if (updated.code === 404) await api.send('POST', `${RBAC}/clusterroles`, { body });
}
