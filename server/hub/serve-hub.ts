/**
 * nodekeeper serve --upstream: a hub as one process over one file.
 *
 * Order of life: data directory, first contact with the cluster, file, copy, listener; and back in the opposite order.
 */
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock, systemRandom, systemTimeLimit } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import { openServerCredentials } from '../../shared/host/credentials.ts';
import { type DatabaseUse, openDataDirectory } from '../../shared/host/data-directory.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { Log } from '../../shared/observability/log.ts';
import { readCertificate } from '../certificate.ts';
import { startEventLoopDelay } from '../event-loop-delay.ts';
import { sweepExpired } from '../expired-items.ts';
import { openFront } from '../front.ts';
import type { HealthCheck } from '../health.ts';
import { processLog } from '../log.ts';
import type { ServeOptions, UpstreamOptions } from '../options.ts';
import { processMetrics } from '../process-metrics.ts';
import { processReadings } from '../process-readings.ts';
import { diskFault } from '../readiness.ts';
import { networkDiskOf } from '../store/network-disk.ts';
import { openStore } from '../store/open-store.ts';
import { storeReadings } from '../store-readings.ts';
import { undoList } from '../undo-list.ts';
import { GRANTS } from '../watches/access-withdrawals.ts';
import { changeSignals } from '../watches/change-signals.ts';
import { clusterConnection } from './cluster-connection.ts';
import { composeHub, type Hub } from './compose-hub.ts';
import { firstContact } from './first-contact.ts';
import { heldFamily, hubReadings, passedFamily } from './hub-readings.ts';
import { PASSED_MAX } from './passing.ts';
import { powerSwitch, requireProgram } from './permits/power-switch.ts';
import { openSiteRescheduling, type SiteRescheduling } from './permits/site-rescheduling.ts';
import { openReplica, type Replica } from './replica.ts';

const DATABASE: DatabaseUse = {
  name: 'replica.db',
  require(file) {
    const cluster = file.replace(/replica\.db$/, 'nodekeeper.db');
    if (!existsSync(cluster)) return;
    throw new StartError(`${cluster} is a cluster of its own: choose another directory for the hub with --data`);
  },
};

export interface ServedHub {
  /** Base URL of the API. */
  readonly url: string;
  /** PEM; undefined: the certificate is of the user's own. */
  readonly caPem: string | undefined;
  readonly dataDirectory: string;
  /** Why it is not ready, in one line; undefined: it is. */
  fault(): string | undefined;
  stop(): Promise<void>;
}

/** @throws StartError for what the user can put right */
export async function startHub(
  options: ServeOptions & { readonly upstream: UpstreamOptions },
  { print }: { readonly print: (line: string) => void },
): Promise<ServedHub> {
  const undo = undoList();
  try {
    // Before anything is changed.
    if (options.certificate !== undefined) readCertificate(options.certificate);
    const { upstream } = options;
    if (upstream.powerOff !== undefined) requireProgram(upstream.powerOff);
    const connection = clusterConnection({ ...upstream, socketsMax: PASSED_MAX });
    undo.push(() => connection.stop());
    const log = processLog({ ...options.log, nowMs: systemClock.nowMs, write: print });
    const data = openDataDirectory(options.dataDirectory, DATABASE);
    undo.push(() => data.dispose());
    const network = networkDiskOf(data.path);
    if (network !== undefined) log.warn('the data directory is on a network: its locks may fail', { kind: network });
    const unreachable = await firstContact(connection, upstream.url.href, existsSync(data.databaseFile));
    if (unreachable !== undefined) {
      log.warn('the cluster cannot be reached: reads are answered from the copy', { why: unreachable });
    }

    const signals = changeSignals();
    const delay = startEventLoopDelay();
    undo.push(() => delay.disable());
    const metrics = processMetrics();
    let replica: Replica | undefined;
    let hub: Hub | undefined;
    let looks: Looks | undefined;
    const store = openStore({
      file: data.databaseFile,
      // Rows expire as in the cluster, and not while it cannot be reached.
      clock: { nowMs: () => replica?.versionClock.nowMs() ?? 0 },
      synchronous: options.synchronous,
      onCommit: (changes) => hub?.onCommit(changes),
    });
    undo.push(() => store.close());

    const copy = await openReplica({
      items: store.items,
      upstream: connection,
      clock: systemClock,
      random: systemRandom,
      pause: (milliseconds, stopped) => pause(milliseconds, undefined, { signal: stopped }),
      startTimeLimit: systemTimeLimit,
      log,
      onChanged: (resource) => signals.changed(resource),
      onRead: () => {
        hub?.onRead();
        looks?.wake();
      },
    });
    replica = copy;
    undo.push(() => copy.stop());
    const authorizes = (): boolean => [...GRANTS].every((resource) => copy.holds(resource));
    undo.push(sweepExpired(store, log));

    const checks: readonly HealthCheck[] = [
      { name: 'store', fault: () => diskFault(store.metrics()) },
      {
        name: 'copy',
        fault: () => (authorizes() ? undefined : 'roles and bindings of the cluster are not copied yet'),
      },
    ];
    const { siteHub: hubName, powerOff } = upstream;
    const site =
      hubName === undefined
        ? undefined
        : await openSiteRescheduling({
            ...{ hubName, items: store.items, replica: copy, upstream: connection, random: systemRandom, log },
            objects: clusterObjects({ items: store.items, clock: systemClock, random: systemRandom }),
            // It stands still in a suspend: the hub then waits for longer.
            monotonicMs: () => performance.now(),
            nowMs: systemClock.nowMs,
            ...(powerOff !== undefined && { switchOff: powerSwitch(powerOff, log) }),
          });
    const composed = composeHub({
      items: store.items,
      signals,
      replica: copy,
      connection,
      clock: systemClock,
      pause,
      log,
      meter: metrics,
      families: () => [heldFamily(copy), passedFamily(composed.passing), ...metrics.families()],
      checks,
      ...defined({ site }),
    });
    hub = composed;
    // The copy may have been complete before. Pods that are new afterwards do not wait for permits of a lost file.
    if (copy.link().kind === 'up') composed.onRead();
    looks = site && lookRepeatedly(site, log);
    if (looks !== undefined) undo.push(looks.stop);
    const credentials = await openServerCredentials(data, systemClock.nowMs(), options.names);
    const front = await openFront({ options, credentials, log, serve: composed.serve });
    undo.push(() => front.stop());
    metrics.readAlso([
      ...hubReadings(copy, composed, systemClock),
      ...processReadings({ delay, listener: front.listener, heldWatches: composed.watches.held }),
      ...storeReadings(() => store.metrics()),
    ]);
    return {
      url: front.url,
      caPem: front.caPem,
      dataDirectory: data.path,
      fault: () => checks.map((check) => check.fault()).find((fault) => fault !== undefined),
      stop: undo.stop,
    };
  } catch (error) {
    await undo.all();
    throw error;
  }
}

/** Between two looks. Milliseconds. */
const SITE_LOOK_MS = 5_000;

interface Looks {
  /** The next look is due. */
  wake(): void;
  /** Resolves when no look is under way. */
  stop(): Promise<void>;
}

function lookRepeatedly(site: Pick<SiteRescheduling, 'look'>, log: Log): Looks {
  let isStopped = false;
  let woken = new AbortController();
  let why: string | undefined;
  async function run(): Promise<void> {
    while (!isStopped) {
      try {
        await site.look();
        why = undefined;
      } catch (error) {
        const { message } = error as Error;
        // Without a link each look with something to send fails. The next one does it.
        if (why !== message) log.warn('what is due about pods of the site could not be done', { error });
        why = message;
      }
      await pause(SITE_LOOK_MS, undefined, { signal: woken.signal }).catch(() => undefined);
      woken = new AbortController();
    }
  }
  const ended = run();
  return {
    wake: () => woken.abort(),
    async stop() {
      isStopped = true;
      woken.abort();
      await ended;
    },
  };
}
