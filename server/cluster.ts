/**
 * The cluster over a store: what answers requests, and the controllers that commits and timers start. The home adds the
 * store, the listener and the clock. Nothing here knows that the store is a file.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { redirectLogs } from '../functions/api/logs/log-redirect.ts';
import type { MetricFamily } from '../functions/api/metrics/open-metrics.ts';
import { enrolmentOver } from '../functions/api/work.ts';
import { leaseProbe, probeTokens } from '../functions/node-monitor/probes.ts';
import { isWatch, type StreamedAnswer } from '../functions/watch/work.ts';
import { accountTokenIssuer, accountTokens } from '../shared/access/account-tokens.ts';
import type { AuditTrail } from '../shared/access/audit.ts';
import { nodeIdentity } from '../shared/access/authorize.ts';
import { bearerSchemes, staticTokenAuthenticator } from '../shared/access/bearer.ts';
import { bootstrapTokens } from '../shared/access/bootstrap-token.ts';
import { bootstrapTokenStore } from '../shared/access/bootstrap-token-store.ts';
import { KEY_ID_EXTRA } from '../shared/access/node-identity.ts';
import { nodeKeys } from '../shared/access/node-key-store.ts';
import { knownKeys, nodeTokens } from '../shared/access/node-tokens.ts';
import {
  accountKeys,
  keepAccountKey,
  keepProbeKey,
  keepTicketKey,
  probeKeys,
} from '../shared/access/process-key-store.ts';
import { processKeys } from '../shared/access/process-keys.ts';
import { readPublicKey } from '../shared/access/public-keys.ts';
import { refusalsAdded } from '../shared/access/refusal-store.ts';
import { refusedRequests } from '../shared/access/refused-requests.ts';
import {
  CONCURRENT_API_LIMITS,
  HEARTBEAT_LIMITS,
  requestThrottle,
  systemBusyMs,
} from '../shared/access/request-throttle.ts';
import type { UserInfo } from '../shared/access/user-info.ts';
import { watchTicketIssuer } from '../shared/access/watch-tickets.ts';
import { requestDependencies } from '../shared/api/request-dependencies.ts';
import { systemClock, systemRandom, systemTimeLimit } from '../shared/clock.ts';
import type { StaticTokenConfig } from '../shared/config/static-tokens.ts';
import { defined } from '../shared/defined.ts';
import type { Cloud } from '../shared/fleet/instances/cloud.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { Authority } from '../shared/host/certificate.ts';
import { certificatesigningrequests } from '../shared/kinds/certificates/serve.ts';
import type { ApiAddress } from '../shared/kinds/namespaces/contents.ts';
import { clusterObjects } from '../shared/kinds/resources.ts';
import type { HttpRequest } from '../shared/kubernetes/http.ts';
import { failedRequests } from '../shared/kubernetes/log-throttle.ts';
import { isHealthPath, withoutWatchPrefix } from '../shared/kubernetes/request.ts';
import type { Log, Meter } from '../shared/observability/log.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import type { Waker } from '../shared/ticks/tick.ts';
import { type SigningRequests, signingRequests } from './certificates/signing-requests.ts';
import { clientCertificates, type HasKey } from './client-certificate.ts';
import type { FleetControllers } from './fleet-controllers.ts';
import { answerHealth, type HealthCheck } from './health.ts';
import { isRenewal } from './routes.ts';
import { type PodSessions, podSessions } from './sessions/pod-sessions.ts';
import type { AcceptUpgrade } from './sessions/upgrades.ts';
import { composeSystem, inProcess } from './system.ts';
import type { ChangeSignals } from './watches/change-signals.ts';
import { servedWatches } from './watches/served-watches.ts';
import { admissionWebhooks } from './webhooks/admission-webhooks.ts';
import type { WebhookClient } from './webhooks/webhook-client.ts';

/** How long a revoked key is still accepted. One read of memory per minute and machine. Milliseconds. */
const KEYS_LIVE_MS = 60_000;
/** A redirect to this origin never leaves the process. */
const OWN_ORIGIN = 'https://process.invalid';

export interface ClusterOptions {
  readonly items: ItemStore;
  readonly signals: ChangeSignals;
  readonly policy: Policy;
  /** Names the cluster in the tokens of its machines. */
  readonly clusterId: string;
  readonly staticTokens: readonly StaticTokenConfig[];
  /** Certificates in PEM that clients verify the listener with. Empty: those of their system. */
  readonly authorities: () => string;
  readonly apiAddress: ApiAddress;
  readonly log: Log;
  readonly meter: Meter;
  readonly waker: Waker;
  readonly auditTrail: AuditTrail;
  readonly processFamilies: () => readonly MetricFamily[];
  /** What a ready process needs. */
  readonly checks: readonly HealthCheck[];
  /** Where machines send their heartbeats: the probe uses the same address. */
  readonly probe: { readonly url: string; readonly fetch: typeof globalThis.fetch };
  /** EC2. Absent: nodes have no instances. */
  readonly cloud?: Cloud;
  /** Signs certificates for those who ask by a CertificateSigningRequest. */
  readonly authority: Authority;
  /** Whether it is a name or an address of the API. No certificate of another has one. */
  readonly isServerName: (name: string) => boolean;
  /** Calls admission webhooks. Absent: another process writes to the same store, and calls none. */
  readonly webhooks?: WebhookClient;
}

export interface Cluster {
  /** `gone`: aborted when the client has left */
  serve(request: HttpRequest, gone: AbortSignal): Promise<StreamedAnswer & { readonly upgrade?: AcceptUpgrade }>;
  readonly controllers: FleetControllers;
  readonly signingRequests: SigningRequests;
  heldWatches(): number;
  readonly sessions: Pick<PodSessions, 'held' | 'stop'>;
}

export function composeCluster(options: ClusterOptions): Cluster {
  const { items, signals, policy, clusterId, log } = options;
  const objects = clusterObjects({ items, clock: systemClock, random: systemRandom, pause });
  const otherwise = staticTokenAuthenticator(options.staticTokens);
  const machines = { keys: nodeKeys(items), probeKeys: probeKeys(items), clusterId, keysLiveMs: KEYS_LIVE_MS };
  const common = { items, clock: systemClock, random: systemRandom, policy, log, pause };
  const tokens = bearerSchemes(
    [
      accountTokens({ keys: accountKeys(items), find: (ref) => objects.get(ref) }),
      nodeTokens(machines),
      bootstrapTokens(bootstrapTokenStore(items)),
    ],
    otherwise,
  );
  const keyOf = knownKeys(machines);
  const hasKey: HasKey = async (machine, nowMs) => (await keyOf(machine, nowMs)) !== undefined;
  const authenticator = clientCertificates(tokens, hasKey);
  const onRefused = refusedRequests({
    log,
    store: refusalsAdded(items),
    noteFault: failedRequests(log, 'refused heartbeats could not be counted'),
  });
  const tickets = watchTicketIssuer(processKeys(keepTicketKey(items), log));
  const hasItsKey = async (user: UserInfo): Promise<boolean> => {
    const identity = nodeIdentity({ name: user.username, groups: user.groups });
    const keyId = user.extra?.[KEY_ID_EXTRA]?.[0];
    if (identity.kind !== 'node' || keyId === undefined) return true;
    return hasKey({ username: user.username, nodeName: identity.nodeName, keyId }, systemClock.nowMs());
  };
  const sessions = podSessions({
    hasItsKey,
    uuid: () => systemRandom.uuid(),
    // A clock that is set must not end every session, nor keep one that rests.
    monotonicMs: () => performance.now(),
    findPod: (namespace, name) => objects.get({ resource: 'pods', namespace, name }),
  });
  const { api, heartbeat, controllers } = composeSystem({
    ...common,
    authenticator,
    meter: options.meter,
    waker: options.waker,
    apiAuthorities: options.authorities,
    probe: leaseProbe({
      ...options.probe,
      credentials: probeTokens({ keys: processKeys(keepProbeKey(items), log), clusterId }),
      clock: systemClock,
    }),
    ...defined({ cloud: options.cloud }),
    api: {
      clusterId,
      accountTokens: { issuer: accountTokenIssuer(keepAccountKey(items), log), keys: accountKeys(items) },
      readPublicKey,
      apiAuthorities: options.authorities,
      apiAddress: options.apiAddress,
      auditTrail: options.auditTrail,
      processFamilies: options.processFamilies,
      limits: CONCURRENT_API_LIMITS,
      busyMs: systemBusyMs,
      openConnection: sessions.openConnection,
      nodeSessions: sessions.nodeSessions,
      signsCertificates: true,
      ...(options.webhooks && {
        webhooksOf: ({ storageOf }) => admissionWebhooks({ ...common, storageOf, client: options.webhooks! }),
      }),
      answerPodLog: redirectLogs({ watchUrl: OWN_ORIGIN, tickets }, { items, random: systemRandom }),
    },
    heartbeat: {
      authenticator: clientCertificates(
        bearerSchemes([nodeTokens({ ...machines, acceptsBeatTokens: true })], otherwise),
        hasKey,
      ),
      startTimeLimit: systemTimeLimit,
      // The rate only: a beat is 8 KB at most, and a process serves many at once, so its time is not that of one
      // sender.
      throttle: requestThrottle(HEARTBEAT_LIMITS, { onRefused }),
      batchThrottle: requestThrottle(HEARTBEAT_LIMITS, { onRefused }),
    },
  });
  const { storageOf, authorizer } = requestDependencies({ ...common, authenticator, gzip: inProcess.gzip });
  const watches = servedWatches({
    ...common,
    makesInitialObjects: true,
    meter: options.meter,
    authenticator,
    nodeKeys: machines.keys,
    signals,
  });
  return {
    controllers,
    signingRequests: signingRequests({
      requests: storageOf(certificatesigningrequests),
      authorizer,
      enrolment: enrolmentOver({ ...common, ...defined({ cloud: options.cloud }) }, storageOf),
      authority: options.authority,
      isServerName: options.isServerName,
      clock: systemClock,
      log,
    }),
    heldWatches: () => watches.held(),
    sessions,
    async serve(received, gone) {
      if (isRenewal(received)) return { head: await heartbeat(received) };
      const request = received.method === 'GET' ? withoutWatchPrefix(received) : received;
      if (isWatch(request)) return watches.serve(request, request, gone);
      const head = await api({ ...request, gone });
      // Whoever may ask is decided as for every other path.
      if (head.status === 200 && isHealthPath(request.path)) return { head: answerHealth(request, options.checks) };
      if (head.status === 101) return { head, ...defined({ upgrade: sessions.take(head) }) };
      const location = head.status === 307 ? head.headers['location'] : undefined;
      if (location?.startsWith(`${OWN_ORIGIN}/`) !== true) return { head };
      return watches.serve(request, { ...request, query: new URL(location).searchParams }, gone);
    },
  };
}
