/** The API and the workload controllers over the same tables in memory, on the clock of the API. */

import { setTimeout as pause } from 'node:timers/promises';
import { passesWorkloadFilter } from '../../server/changes/change-filters.ts';
import { fleetControllers } from '../../server/fleet-controllers.ts';
import { type ControllerObjectParts, controllerObjects } from '../../shared/admission/controller-objects.ts';
import type { AdmitObjects } from '../../shared/admission/created-object.ts';
import { policiesOnDemand } from '../../shared/admission/policies-on-demand.ts';
import { defined } from '../../shared/defined.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { ConsumedUnits, ItemStore } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { apiInMemory } from './api-in-memory.ts';

const ROUNDS_MAX = 100;

export interface ServedWorkloadsOptions {
  readonly apiStore?: (items: ItemStore) => ItemStore;
  readonly controllerStore?: (items: ItemStore) => ItemStore;
  readonly apiAuthorities?: () => string;
  readonly onConsumed?: (units: ConsumedUnits) => void;
  /** Users of the API, by token. */
  readonly users?: Readonly<Record<string, { readonly name: string; readonly groups: readonly string[] }>>;
  /** Tables that another cluster of this kind has already. */
  readonly sharedItems?: MemoryItemStore;
  /**
   * What controllers create is admitted: by the policies of the API, as in a process that calls webhooks; by policies
   * on demand, as in a function; or by this. Absent: it is written as made.
   */
  readonly admission?: 'policies' | 'on demand' | ControllerObjectParts['admission'];
  /** Absent: the default policy. */
  readonly policy?: Policy;
}

export function servedWorkloads(options: ServedWorkloadsOptions = {}) {
  const items =
    options.sharedItems ?? memoryItemStore({ changesOf: ['objects'], ...defined({ onConsumed: options.onConsumed }) });
  const authorities = defined({ apiAuthorities: options.apiAuthorities });
  const users = defined({ users: options.users });
  const api = apiInMemory({ items: options.apiStore?.(items) ?? items, ...authorities, ...users });
  let uuids = 0;
  let seen = 0;
  const silent = () => {};
  const clock = { nowMs: api.nowMs };
  const common = {
    items: options.controllerStore?.(items) ?? items,
    clock,
    random: {
      uuid: () => {
        uuids += 1;
        return `10000000-0000-4000-8000-${String(uuids).padStart(12, '0')}`;
      },
      fraction: () => 0.5,
    },
    policy: options.policy ?? defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
  };
  const admitted = (): AdmitObjects | undefined => {
    const { admission } = options;
    if (admission === undefined) return undefined;
    if (admission === 'on demand') return policiesOnDemand({ ...workDependencies(common), pause });
    return controllerObjects({ clock, pause, admission: admission === 'policies' ? api.admission : admission });
  };
  const controllers = fleetControllers({ ...common, ...authorities, ...defined({ admitObjects: admitted() }) });
  const cluster = {
    api,
    controllers,
    items,
    /** Answer of a request that must succeed. */
    async ok(method: string, path: string, body?: unknown) {
      const answer = await api.send(method, path, body === undefined ? {} : { body });
      if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${answer.text}`);
      return answer.body;
    },
    /** Delivers the records of the stream until the controllers change nothing. Returns the number of batches. */
    async settle(): Promise<number> {
      for (let round = 0; round < ROUNDS_MAX; round += 1) {
        const changes = items.changes('objects', seen);
        seen = changes.at(-1)?.sequence ?? seen;
        const batch = changes.filter(passesWorkloadFilter);
        if (batch.length === 0) return round;
        const { faults, postponed } = await controllers.onWorkloadRecords(batch);
        if (faults.length + postponed.length > 0) throw new AggregateError([...faults, ...postponed], 'faults');
      }
      throw new Error('the controllers do not settle');
    },
    /** Later: works that are due, and what follows from them. */
    async tickAfter(milliseconds: number): Promise<void> {
      api.advance(milliseconds);
      await controllers.tickWorkloads(Math.floor(api.nowMs() / 5_000));
      await cluster.settle();
    },
    /** Records of the stream so far are lost. */
    loseRecords(): void {
      seen = items.changes('objects', seen).at(-1)?.sequence ?? seen;
    },
  };
  return cluster;
}
