/**
 * nodekeeper serve: the whole system as one process over one file.
 *
 * Order of life: data directory, store, credentials, listener, change delivery, ticks; and back in the opposite order.
 * The listener answers only after the store is open. A start that fails closes what it had opened.
 */
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { cloudNodeManifest } from '../functions/cloud-node/manifest.ts';
import { answerOfFence } from '../shared/api/move-door.ts';
import { systemClock } from '../shared/clock.ts';
import type { Cloud } from '../shared/fleet/instances/cloud.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { type Control, ControlError } from '../shared/host/control-socket.ts';
import { openCredentials, staticTokensOf, writeKubeconfig } from '../shared/host/credentials.ts';
import { type DatabaseUse, type DataDirectory, openDataDirectory } from '../shared/host/data-directory.ts';
import { StartError } from '../shared/host/start-error.ts';
import type { Log } from '../shared/observability/log.ts';
import { loggedResource } from '../shared/store/layout.ts';
import type { Fence } from '../shared/store/move-rows.ts';
import type { StoreChange } from '../shared/store/writes/store-change.ts';
import { apiAddressOf } from './api-address.ts';
import { isNameIn, readAuthorities, readCertificate } from './certificate.ts';
import { sweepHourly } from './certificates/signing-requests.ts';
import { changeDelivery, type PendingChanges } from './changes/change-delivery.ts';
import {
  passesHealthFilter,
  passesObjectFilter,
  passesSigningFilter,
  passesWorkloadFilter,
} from './changes/change-filters.ts';
import { composeCluster } from './cluster.ts';
import { startEventLoopDelay } from './event-loop-delay.ts';
import { sweepExpired } from './expired-items.ts';
import { fileAuditTrail } from './file-audit-trail.ts';
import { openFront } from './front.ts';
import { policyOf, usersOf } from './inputs.ts';
import { processLog } from './log.ts';
import { fenceChange } from './move/fence-change.ts';
import { openArrival } from './move/open-arrival.ts';
import { OPERATIONS_SOCKET, type StoreOperations, serveOperations } from './operations/operations.ts';
import type { ServeOptions } from './options.ts';
import { ownFetch } from './own-requests.ts';
import { processMetrics } from './process-metrics.ts';
import { clusterReadings, processReadings } from './process-readings.ts';
import { diskFault, readinessChecks } from './readiness.ts';
import { networkDiskOf } from './store/network-disk.ts';
import { openStore } from './store/open-store.ts';
import type { SqliteStore } from './store/sqlite-store.ts';
import { storeReadings } from './store-readings.ts';
import { openServedTables } from './tables/served-tables.ts';
import { tickTimers } from './ticks.ts';
import { undoList } from './undo-list.ts';
import { mayWithdrawAccess } from './watches/access-withdrawals.ts';
import { changeSignals } from './watches/change-signals.ts';
import { webhookClient } from './webhooks/webhook-client.ts';

/** The directory has keys and users alone. */
const NO_DATABASE: DatabaseUse = { name: 'none', require() {} };
const DATABASE: DatabaseUse = {
  name: 'nodekeeper.db',
  require(file, knownBy) {
    if (knownBy === undefined || existsSync(file)) return;
    throw new StartError(
      `${file} does not exist, although ${knownBy} of its cluster does. Nothing was changed. Put the file back, or ` +
        'choose another directory with --data to begin with an empty cluster',
    );
  },
};
/** States of an instance after which a node may change. */
const INSTANCE_STATES: readonly string[] = cloudNodeManifest.triggers[1].states;

export interface ServedCluster {
  /** Base URL of the API. */
  readonly url: string;
  /** PEM; undefined: the certificate is of the user's own. */
  readonly caPem: string | undefined;
  readonly adminToken: string;
  readonly fleetToken: string;
  /** undefined: the users of the cluster are not ours. */
  readonly kubeconfigPath: string | undefined;
  readonly dataDirectory: string;
  readonly policy: Policy;
  /** Why it is not ready, in one line; undefined: it is. */
  fault(): string | undefined;
  stop(): Promise<void>;
}

export interface ServeParts {
  /** Receives the log, line by line. */
  print(line: string): void;
  /** EC2. Absent: nodes have no instances. `onChange`: for a change of state of an instance. */
  cloudOf?(data: DataDirectory, onChange: (instanceId: string, state: string) => void): Cloud;
}

/** @throws StartError for what the user can put right */
export async function startServe(options: ServeOptions, parts: ServeParts): Promise<ServedCluster> {
  const undo = undoList();
  try {
    const policy = policyOf(options.policyFile);
    // Before anything is changed.
    if (options.certificate !== undefined) readCertificate(options.certificate);
    const authorities = options.clientCaFile === undefined ? [] : readAuthorities(options.clientCaFile);
    const users = usersOf(options);
    const log = processLog({ ...options.log, nowMs: systemClock.nowMs, write: parts.print });
    const data = openDataDirectory(options.dataDirectory, options.tables === undefined ? DATABASE : NO_DATABASE);
    undo.push(() => data.dispose());
    const network = networkDiskOf(data.path);
    if (network !== undefined) log.warn('the data directory is on a network: its locks may fail', { kind: network });

    const signals = changeSignals();
    const delay = startEventLoopDelay();
    undo.push(() => delay.disable());
    const metrics = processMetrics();
    const deployed = options.tables && (await openServedTables(options.tables, signals));
    undo.push(() => deployed?.close());
    const openFile = (): SqliteStore =>
      openStore({
        file: data.databaseFile,
        clock: systemClock,
        synchronous: options.synchronous,
        consumersOf: options.controllers ? consumersOf : () => [],
        onCommit(changes) {
          for (const change of changes) {
            for (const { consumer, id } of change.pending) delivery.offer(consumer, { id, change });
            const { key, type } = change;
            const resource = key.table === 'objects' && type === 'INSERT' ? loggedResource(key.pk) : undefined;
            if (resource !== undefined) signals.changed(resource);
            if (mayWithdrawAccess(change)) signals.withdrawn();
          }
        },
      });
    const file = deployed === undefined ? openFile() : undefined;
    undo.push(() => file?.close());
    if (file !== undefined) await openArrival(file, data.databaseFile);
    const fence = (): Fence | undefined => file?.fence();
    let isDraining = false;
    const operations =
      file &&
      (await openOperations(
        data.file(OPERATIONS_SOCKET),
        {
          backup: (to) => file.backup(to),
          check: () => file.check(),
          fence,
          setFence: (next, expected) => changeFence(file, next, expected),
        },
        log,
      ));
    undo.push(() => operations?.close());

    const credentials = await openCredentials(data, systemClock.nowMs(), options.names);
    const timers = tickTimers({ policy, clock: systemClock, log, meter: metrics });
    const onInstanceChange = (instanceId: string, state: string): void => {
      if (!INSTANCE_STATES.includes(state)) return;
      controllers.onInstanceChange(instanceId).catch((error: unknown) => {
        log.error('a change of an instance could not be processed: the next tick does it', { instanceId, error });
      });
    };
    let serving: ReturnType<typeof composeCluster>['serve'];
    const front = await openFront({
      options,
      credentials,
      clientAuthorities: [
        { certificate: new X509Certificate(credentials.authority.certificatePem), isOwn: true },
        ...authorities.map((each) => ({ certificate: each, isOwn: false })),
      ],
      log,
      async serve(request, gone) {
        const set = deployed === undefined ? fence() : await deployed.fence();
        const head = answerOfFence(request, { fence: set, isDraining });
        return head === undefined ? serving(request, gone) : { head };
      },
    });
    undo.push(() => front.stop());
    const { url, caPem, listener } = front;
    const checks = readinessChecks({
      policy,
      fence,
      silentMs: () => (options.controllers && fence() === undefined ? timers.silentMs() : undefined),
      storeFault: () => (file === undefined ? deployed?.fault() : diskFault(file.metrics())),
      isBehind: () => delivery.waiting().isBehind,
    });
    const webhooks = file && webhookClient();
    undo.push(() => webhooks?.stop());
    const cluster = composeCluster({
      items: deployed?.items ?? file!.items,
      signals,
      policy,
      clusterId: deployed?.clusterId ?? options.clusterId,
      staticTokens: users ?? staticTokensOf(credentials),
      authorities: () => caPem ?? '',
      apiAddress: () => apiAddressOf(options.host, listener.port, networkInterfaces()),
      log,
      meter: metrics,
      waker: timers,
      auditTrail: fileAuditTrail(data.file('audit.log')),
      processFamilies: () => metrics.families(),
      checks,
      probe: { url: front.ownUrl, fetch: ownFetch(front.certificatePem) },
      authority: credentials.authority,
      isServerName: (name) => isNameIn(front.certificatePem(), name),
      ...(webhooks && { webhooks }),
      ...(parts.cloudOf && { cloud: parts.cloudOf(data, onInstanceChange) }),
    });
    serving = cluster.serve;
    undo.push(() => cluster.sessions.stop());
    const { controllers, signingRequests } = cluster;
    const consumers = {
      'health-stream': controllers.onHealthRecords,
      'object-stream': controllers.onObjectRecords,
      workloads: controllers.onWorkloadRecords,
      'signing-requests': signingRequests.onRecords,
    };
    const delivery = changeDelivery({
      changes: file ?? NO_CHANGES,
      consumers,
      pause: (milliseconds, stopped) => pause(milliseconds, undefined, { signal: stopped }),
      log,
      meter: metrics,
    });
    // Not before the delivery is there: what is deleted is a change.
    if (file !== undefined) undo.push(sweepExpired(file, log));
    undo.push(() => delivery.stop());
    undo.push(() => timers.stop());
    const startWork = (): void => {
      if (!options.controllers || fence() !== undefined) return;
      delivery.start();
      timers.start(controllers.ticks);
    };
    startWork();
    const sweepRequests = async (): Promise<void> => (fence() === undefined ? signingRequests.sweep() : undefined);
    if (options.controllers) undo.push(sweepHourly(sweepRequests, log));
    const changeFence = fenceChange({
      consumers: Object.keys(consumers),
      onDraining(is) {
        isDraining = is;
      },
      async stopWork(drained) {
        await timers.stop();
        await drained();
        await delivery.stop();
      },
      startWork,
    });
    if (users === undefined) {
      const { adminToken: token, viewerToken } = credentials;
      writeKubeconfig(data.file('kubeconfig'), { url, caPem, token, viewerToken });
    }
    metrics.readAlso([
      ...processReadings({ delay, listener, heldWatches: cluster.heldWatches }),
      ...clusterReadings(cluster.sessions, delivery),
    ]);
    if (file !== undefined) metrics.readAlso(storeReadings(() => file.metrics()));
    return {
      url,
      caPem,
      adminToken: credentials.adminToken,
      fleetToken: credentials.fleetToken,
      kubeconfigPath: users === undefined ? data.file('kubeconfig') : undefined,
      dataDirectory: data.path,
      policy,
      fault: () => checks.map((check) => check.fault()).find((fault) => fault !== undefined),
      stop: undo.stop,
    };
  } catch (error) {
    await undo.all();
    throw error;
  }
}

function consumersOf(change: StoreChange): readonly string[] {
  const { table } = change.key;
  if (table === 'health') return passesHealthFilter(change) ? ['health-stream'] : [];
  if (table !== 'objects') return [];
  const consumers: string[] = [];
  if (passesObjectFilter(change)) consumers.push('object-stream');
  if (passesWorkloadFilter(change)) consumers.push('workloads');
  if (passesSigningFilter(change)) consumers.push('signing-requests');
  return consumers;
}

/** The functions of a stack do the work. */
const NO_CHANGES: PendingChanges = { pending: () => [], processed() {} };

/** A cluster runs without it: `nodekeeper backup` and `check` then say that the database is in use. */
async function openOperations(path: string, store: StoreOperations, log: Log): Promise<Control | undefined> {
  try {
    return await serveOperations(path, store);
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    log.warn('nodekeeper backup and check cannot reach this process', { cause: error.message });
    return undefined;
  }
}
