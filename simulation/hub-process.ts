/**
 * One process of a hub: the real replica over a store that outlives it. It is killed at one of its calls, which may
 * still happen. Reads of its clients go through the same store.
 */

import {
  openSiteRescheduling,
  type SiteRescheduling,
  type SiteReschedulingOptions,
} from '../server/hub/permits/site-rescheduling.ts';
import { openReplica, type Replica } from '../server/hub/replica.ts';
import type { Upstream } from '../server/hub/upstream.ts';
import { type ChangeSignals, changeSignals } from '../server/watches/change-signals.ts';
import { sharedChanges } from '../server/watches/shared-changes.ts';
import type { Clock } from '../shared/clock.ts';
import { clusterObjects, shardsOf } from '../shared/kinds/resources.ts';
import type { Log } from '../shared/observability/log.ts';
import { type ChangeLog, changeLog } from '../shared/store/change-log.ts';
import { type ItemStore, StoreFault } from '../shared/store/item-store.ts';
import type { ObjectStore } from '../shared/store/object-store.ts';
import { seededUuid } from './seeded-random.ts';
import { never, type VirtualTime } from './virtual-time.ts';

/** Some calls to the store last: others run meanwhile. Milliseconds. */
const SLOW_CALL_SHARE = 0.2;
const CALL_MAX_MS = 4;
/** Of the writes, while the disk fails. */
const DISK_FAULT_SHARE = 0.3;

export class HubLife {
  #isDead = false;
  #callsLeft = Number.POSITIVE_INFINITY;
  #lastHappens = false;
  readonly #end = Promise.withResolvers<void>();

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Resolves at its death. */
  get ended(): Promise<void> {
    return this.#end.promise;
  }

  /** It dies at this call from now on, before or after it happens. */
  dieAtCall(calls: number, lastHappens: boolean): void {
    this.#callsLeft = calls;
    this.#lastHappens = lastHappens;
  }

  kill(): void {
    this.#isDead = true;
    this.#end.resolve();
  }

  /** An outside call of the process. It never returns to a dead one. */
  async call<T>(run: () => Promise<T>): Promise<T> {
    if (this.#isDead) return never();
    this.#callsLeft -= 1;
    if (this.#callsLeft <= 0) {
      if (this.#lastHappens) run().catch(() => undefined);
      this.kill();
      return never();
    }
    try {
      const value = await run();
      return this.#isDead ? never() : value;
    } catch (error) {
      if (this.#isDead) return never();
      throw error;
    }
  }
}

export interface HubProcess {
  readonly life: HubLife;
  readonly replica: Replica;
  readonly signals: ChangeSignals;
  /** For watches, as in server/watches/served-watches.ts. */
  readonly changes: ChangeLog;
  readonly objects: Pick<ObjectStore, 'list'>;
  /** Absent: it moves no pods. */
  readonly site: SiteRescheduling | undefined;
}

type SwitchOff = NonNullable<SiteReschedulingOptions['switchOff']>;

/** What a test may change of a hub. */
export interface PlantedHub {
  readonly items?: (items: ItemStore) => ItemStore;
  readonly upstream?: (upstream: Upstream) => Upstream;
  readonly replica?: (replica: Replica, clock: Clock) => Replica;
  readonly permits?: SiteReschedulingOptions['permitsOf'];
  readonly switchOff?: (switchOff: SwitchOff) => SwitchOff;
  /** The clock of fences, from that of the machine. */
  readonly fenceClock?: (clock: Clock) => () => number;
}

export async function openHub(
  life: HubLife,
  options: {
    readonly file: ItemStore;
    readonly upstream: Upstream;
    /** Of the machine of the hub. */
    readonly clock: Clock;
    readonly time: VirtualTime;
    readonly fraction: () => number;
    readonly isDiskFailing: () => boolean;
    /** A write of the store failed. */
    readonly onDiskFault: () => void;
    readonly log: Log;
    readonly plant: PlantedHub;
    /** It moves pods of its site, as this user. */
    readonly reschedulesAs?: string | undefined;
    /** The power switch of the site. */
    readonly switchOff?: SwitchOff | undefined;
  },
): Promise<HubProcess> {
  const { file, upstream, clock, time, fraction, log, plant } = options;
  const slow = async (): Promise<void> => {
    if (fraction() < SLOW_CALL_SHARE) await time.sleep(1 + fraction() * CALL_MAX_MS);
  };
  const reading = async <T>(run: () => Promise<T>): Promise<T> => {
    await slow();
    return life.call(run);
  };
  /** A write that fails may have happened. */
  const writing = async <T>(run: () => Promise<T>): Promise<T> => {
    await slow();
    const fails = options.isDiskFailing() && fraction() < DISK_FAULT_SHARE;
    const happens = !fails || fraction() < 0.5;
    return life.call(async () => {
      const answer = happens ? await run() : undefined;
      if (fails || answer === undefined) {
        options.onDiskFault();
        throw new StoreFault('timeout', 'the disk of the hub fails', { retryable: true });
      }
      return answer;
    });
  };
  const own: ItemStore = {
    get: (key, at) => reading(() => file.get(key, at)),
    getMany: (keys, at) => reading(() => file.getMany(keys, at)),
    query: (request) => reading(() => file.query(request)),
    scan: (request) => reading(() => file.scan(request)),
    write: (write, wanted) => writing(() => file.write(write, wanted)),
    transact: (writes) => writing(() => file.transact(writes)),
  };
  const items = plant.items?.(own) ?? own;
  const signals = changeSignals();
  let site: SiteRescheduling | undefined;
  const opened = await openReplica({
    items,
    upstream: plant.upstream?.(upstream) ?? upstream,
    clock,
    random: { fraction },
    pause: (milliseconds) => life.call(() => time.sleep(milliseconds)),
    startTimeLimit: (milliseconds) => ({ reached: time.sleep(milliseconds), cancel: () => undefined }),
    log,
    onChanged: (resource) => signals.changed(resource),
    onRead: () => site?.onRead(),
  });
  const replica = plant.replica?.(opened, clock) ?? opened;
  const { versionClock } = replica;
  const objects = clusterObjects({ items, clock: versionClock, random: { fraction, uuid: () => '' } });
  const { reschedulesAs: hubName } = options;
  const switchOff = options.switchOff && (plant.switchOff?.(options.switchOff) ?? options.switchOff);
  site =
    hubName === undefined
      ? undefined
      : await openSiteRescheduling({
          ...{ hubName, items, objects, replica, log },
          upstream: plant.upstream?.(upstream) ?? upstream,
          monotonicMs: plant.fenceClock?.(clock) ?? time.nowMs,
          nowMs: clock.nowMs,
          random: { uuid: () => seededUuid(fraction) },
          ...(switchOff !== undefined && { switchOff: (nodeName) => life.call(() => switchOff(nodeName)) }),
          ...(plant.permits !== undefined && { permitsOf: plant.permits }),
        });
  return {
    life,
    site,
    replica,
    signals,
    changes: sharedChanges(changeLog({ items, clock: versionClock, shardsOf }), signals, clock),
    objects,
  };
}
