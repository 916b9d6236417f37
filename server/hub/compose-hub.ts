/** A hub over its copy of a cluster: what answers requests from the copy, and passes all others. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { PUBLIC_PATHS } from '../../functions/api/answers.ts';
import {
  METRIC_CONTENT_TYPES,
  type MetricFamily,
  metricFormatFor,
  metricsText,
} from '../../functions/api/metrics/open-metrics.ts';
import { get, list } from '../../functions/api/verbs/read-calls.ts';
import { documents } from '../../functions/api/work.ts';
import { isWatch } from '../../functions/watch/work.ts';
import { METRICS_PATH } from '../../shared/access/authorize.ts';
import type { NodeKey, NodePublicKey } from '../../shared/access/node-identity.ts';
import { CONCURRENT_API_LIMITS, systemBusyMs } from '../../shared/access/request-throttle.ts';
import type { UserInfo } from '../../shared/access/user-info.ts';
import type { Call } from '../../shared/api/call.ts';
import { requestDependencies } from '../../shared/api/request-dependencies.ts';
import { serveApi } from '../../shared/api/serve.ts';
import { answerLongPoll } from '../../shared/api/watch/long-poll.ts';
import { type Clock, systemRandom, systemTimeLimit } from '../../shared/clock.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { gzipInThread } from '../../shared/gzip.ts';
import { storedAs } from '../../shared/kinds/registry.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import { isNamespaceContent } from '../../shared/kinds/stored-resource.ts';
import { type HttpRequest, type HttpResponse, quotable } from '../../shared/kubernetes/http.ts';
import { failedRequests } from '../../shared/kubernetes/log-throttle.ts';
import { parsePath, refuseFutureVersion, withoutWatchPrefix } from '../../shared/kubernetes/request.ts';
import * as status from '../../shared/kubernetes/status.ts';
import type { Log, Meter } from '../../shared/observability/log.ts';
import type { ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { storedResource } from '../../shared/store/layout.ts';
import type { StoreChange } from '../../shared/store/writes/store-change.ts';
import { answerHealth, type HealthCheck } from '../health.ts';
import { listTurns } from '../list-turns.ts';
import { sha256 } from '../sha256.ts';
import { mayWithdrawAccess } from '../watches/access-withdrawals.ts';
import type { ChangeSignals } from '../watches/change-signals.ts';
import { type ServedWatches, servedWatches } from '../watches/served-watches.ts';
import { clusterAccountKeys, clusterNodeKeys } from './access/cluster-keys.ts';
import { hubAuthenticator, REQUIRED } from './access/hub-authenticator.ts';
import { keptAnswers } from './access/kept-answers.ts';
import { questions } from './access/questions.ts';
import { reviewedTokens } from './access/reviewed-tokens.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { type PassedAnswer, type Passing, passing } from './passing.ts';
import { answerPermits, asksForPermits, isPermitRequest } from './permits/answer-permits.ts';
import type { SiteRescheduling } from './permits/site-rescheduling.ts';
import type { Replica } from './replica.ts';
import { routeOf } from './routes.ts';
import { acceptStatuses, isSiteStatus } from './statuses/accept-status.ts';
import { shownStatuses } from './statuses/shown-statuses.ts';

export interface HubOptions {
  readonly items: ItemStore;
  readonly signals: ChangeSignals;
  readonly replica: Pick<Replica, 'versionClock' | 'holds' | 'isPart' | 'version' | 'link' | 'clusterId' | 'caughtUp'>;
  readonly connection: ClusterConnection;
  readonly clock: Clock;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly log: Log;
  readonly meter: Meter;
  readonly families: () => readonly MetricFamily[];
  readonly checks: readonly HealthCheck[];
  /** Permits for the machines of its site. Absent: it has none. */
  readonly site?: SiteRescheduling;
}

export interface Hub {
  /** `gone`: aborted when the client has left */
  serve(request: HttpRequest, gone: AbortSignal): Promise<PassedAnswer>;
  /** A commit of the copy is durable. */
  onCommit(changes: readonly StoreChange[]): void;
  /** Every resource was read from the cluster. */
  onRead(): void;
  /** Objects that are shown with a status that the cluster may not have. */
  shownStatuses(): number;
  readonly watches: Pick<ServedWatches, 'held'>;
  readonly passing: Pick<Passing, 'codes' | 'held'>;
}

/** After which a client asks again for a version that the copy does not have. */
const TOO_LARGE_RETRY_SECONDS = 1;

/** What the node graph (shared/access/authorizer.ts) reads. */
const GRAPH = ['pods', 'persistentvolumes'];

export function composeHub(options: HubOptions): Hub {
  const { items, signals, replica, connection, clock, pause, log } = options;
  const objects = clusterObjects({ items, clock, random: systemRandom });
  const downSinceMs = (): number | undefined => {
    const link = replica.link();
    return link.kind === 'down' ? link.sinceMs : undefined;
  };
  const isDown = (): boolean => downSinceMs() !== undefined;
  const clusterUid = async (): Promise<string | undefined> =>
    (await objects.get({ resource: 'namespaces', namespace: '', name: 'kube-system' }))?.metadata.uid;
  const noteUnkept = failedRequests(log, 'an answer about a credential could not be kept');
  const onFault = (error: StoreFault): void => noteUnkept(error, {}, clock.nowMs());
  const kept = <T>(what: string) => keptAnswers<T>(what, { items, clusterUid, onFault });
  const addresses = new AsyncLocalStorage<string>();
  // A hub that copies a cluster for the first time can ask it.
  const isCut = (): boolean => {
    const link = replica.link();
    return link.kind === 'down' && link.hasFailed;
  };
  const asked = questions({ upstream: connection, isDown: isCut, address: () => addresses.getStore() ?? '' });
  const limited = { questions: asked, startTimeLimit: systemTimeLimit };
  const nodeKeys = clusterNodeKeys({ ...limited, kept: kept<readonly NodeKey[]>('machines'), clock });
  const authenticator = hubAuthenticator({
    accountKeys: clusterAccountKeys({ questions: asked, kept: kept<readonly NodePublicKey[]>('accounts'), clock }),
    nodeKeys,
    clusterId: replica.clusterId,
    find: (ref) => objects.get(ref),
    reviews: reviewedTokens({ ...limited, kept: kept<UserInfo>('tokens'), downSinceMs }),
    isDown,
    isPart: () => REQUIRED.some(replica.isPart),
    caughtUp: (resource) => replica.caughtUp(resource),
  });
  const statuses = shownStatuses({ items, clock, onChanged: signals.changed });
  const common = {
    ...{ items: statuses.items, authenticator, clock, pause, log, random: systemRandom, policy: defaultPolicy },
    versionClock: replica.versionClock,
    makesInitialObjects: false,
  };
  const dependencies = {
    ...requestDependencies({ ...common, gzip: gzipInThread, limits: CONCURRENT_API_LIMITS, busyMs: systemBusyMs }),
    answerWatch: answerLongPoll,
    inTurn: listTurns(),
  };
  const document = documents(sha256);
  const api = serveApi(dependencies, {
    verbs: {
      get: (call) => readAtVersion(call, get),
      list: (call) => readAtVersion(call, list),
      patch: acceptStatuses({ ...dependencies, statuses, isDown }),
    },
    unstored: ({ target, request, user }) =>
      options.site !== undefined && isPermitRequest(target) ? answerPermits(options.site, request, user) : undefined,
    publicPath: (path, request) => (PUBLIC_PATHS.has(path) ? document(path, request) : undefined),
    path: async (path, request) => (path === METRICS_PATH ? metrics(request) : document(path, request)),
  });
  const watches = servedWatches({ ...common, meter: options.meter, nodeKeys, signals });
  const passed = passing({ connection, isDown, nowMs: clock.nowMs });

  /**
   * Upstream's watch cache waits for a version that it does not have, and answers 504 then. Source: k8s.io/apiserver
   * pkg/storage/cacher/watch_cache.go, waitUntilFreshAndBlock.
   */
  async function readAtVersion(call: Call, read: typeof get): Promise<HttpResponse> {
    const text = call.request.query.get('resourceVersion') ?? '';
    const { resource } = storedAs(call.descriptor);
    const asked = Number(text);
    // What is shown of the site has versions of its own, above those of the copy.
    const isNewer = asked > replica.version(resource) && asked > (await dependencies.changes.currentVersion(resource));
    if (isNewer && (isDown() || !(await replica.caughtUp(resource)))) {
      refuseFutureVersion(call.request.query, call.nowMs);
      throw status.resourceVersionTooLarge(text, String(replica.version(resource)), TOO_LARGE_RETRY_SECONDS);
    }
    return read(dependencies, call);
  }

  function metrics({ headers }: HttpRequest): HttpResponse {
    const format = metricFormatFor(headers['accept']);
    const body = metricsText(options.families(), format);
    return { status: 200, headers: { 'content-type': METRIC_CONTENT_TYPES[format] }, body };
  }

  const asWarning = (text: string): string => `199 nodekeeper "${quotable(text)}"`;

  function warned(answer: PassedAnswer, text: string): PassedAnswer {
    const { headers } = answer.head;
    const warning = headers['warning'] === undefined ? asWarning(text) : `${headers['warning']}, ${asWarning(text)}`;
    return { ...answer, head: { ...answer.head, headers: { ...headers, warning } } };
  }

  /** A list is not of the whole cluster. */
  const withPart = (answer: PassedAnswer, resource: string): PassedAnswer =>
    replica.isPart(resource) ? warned(answer, `this hub has only the ${resource} of the nodes of its site`) : answer;

  /** How old the copy is, while it cannot be brought up to date. Source: RFC 9111, 5.5. */
  function withAge(answer: PassedAnswer): PassedAnswer {
    const link = replica.link();
    if (link.kind === 'up') return answer;
    const seconds = Math.max(0, Math.round((clock.nowMs() - link.sinceMs) / 1_000));
    const since = new Date(link.sinceMs).toISOString().replace(/\.\d+Z$/, 'Z');
    return warned(answer, `this copy is from ${since}, ${seconds} s ago: ${link.why}`);
  }

  /** The pods of a node allow it to read what they refer to. */
  const mayBeAllowed = (head: HttpResponse): boolean => head.status === 403 && !GRAPH.every(replica.holds);

  return {
    watches,
    passing: passed,
    shownStatuses: statuses.count,
    onRead() {
      options.site?.onRead();
      statuses.onRead().catch((error: unknown) => {
        log.warn('statuses of the site are shown for longer: the copy cannot be read', { error });
      });
    },
    onCommit(changes) {
      statuses.onCommit(changes);
      for (const change of changes) {
        if (mayWithdrawAccess(change)) signals.withdrawn();
        if (change.type !== 'REMOVE' || storedResource(change.key.pk) !== 'nodes') continue;
        nodeKeys.forget(change.key.sk).catch((error: unknown) => {
          log.error('the keys of a deleted node are still kept', { nodeName: change.key.sk, error });
        });
      }
    },
    serve: (received, gone) => addresses.run(received.sourceIp, () => serve(received, gone)),
  };

  async function serve(received: HttpRequest, gone: AbortSignal): Promise<PassedAnswer> {
    const request = received.method === 'GET' ? withoutWatchPrefix(received) : received;
    // A hub without permits says so itself: machines ask it once per hour.
    if (isSiteStatus(request) || asksForPermits(request)) return { head: await api(request) };
    const route = routeOf(request, replica.holds);
    if (route.kind === 'pass') {
      const answer = await passed.pass(received, gone);
      if (route.changes !== undefined && answer.head.status < 300) await replica.caughtUp(route.changes);
      return answer;
    }
    if (route.kind === 'copy') {
      if (isWatch(request)) {
        const answer = await watches.serve(request, request, gone);
        return mayBeAllowed(answer.head)
          ? passed.pass(received, gone)
          : withPart(withAge(answer), route.resource ?? '');
      }
      const head = await api({ ...request, gone });
      // It may have been read while its rows were deleted.
      const isHeld = routeOf(request, replica.holds).kind === 'copy';
      const { resource = '' } = route;
      const mayExist = head.status === 404 && (isMadeByRead(request) || replica.isPart(resource));
      return !isHeld || mayExist || mayBeAllowed(head)
        ? passed.pass(received, gone)
        : withPart(withAge({ head }), resource);
    }
    // Whoever may ask is decided as for every other path.
    const head = await api(route.what === 'metrics' ? { ...request, path: METRICS_PATH } : request);
    return { head: route.what === 'health' && head.status === 200 ? answerHealth(request, options.checks) : head };
  }
}

/** The cluster makes such an object when it is read. */
function isMadeByRead({ path }: HttpRequest): boolean {
  const parsed = parsePath(path);
  return parsed.kind === 'resource' && isNamespaceContent(parsed.target.resource, parsed.target.name);
}
