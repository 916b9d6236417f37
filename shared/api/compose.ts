/** Composes the API over any item store: the same in the function, in tests and in simulations. */

import type { CidrSet } from '../domain/cidrs/cidr-set.ts';
import { createCidrSets } from '../domain/cidrs/cluster-cidrs.ts';
import { defined } from '../domain/defined.ts';
import { podEvictionTimeoutOn } from '../domain/nodes/node-profile.ts';
import type { Policy } from '../domain/policy.ts';
import { createOpenApi } from '../kube/openapi/openapi.ts';
import { failedRequests, REQUEST_FAILED } from '../kube/request/log-throttle.ts';
import { refusedRequests } from '../kube/request/refused-requests.ts';
import { refusedSignIns } from '../kube/request/refused-sign-ins.ts';
import { type RequestLimits, type RequestThrottle, requestThrottle } from '../kube/request/request-throttle.ts';
import type { AccountKeys, AccountTokenIssuer } from '../ports/account-tokens.ts';
import type { AuditTrail } from '../ports/audit-trail.ts';
import type { Authenticator } from '../ports/authenticator.ts';
import type { Clock, RandomSource } from '../ports/clock.ts';
import type { Cloud } from '../ports/cloud.ts';
import type { HttpRequest, HttpResponse } from '../ports/http.ts';
import type { ItemStore } from '../ports/item-store.ts';
import type { Log } from '../ports/log.ts';
import type { ReadPublicKey } from '../ports/node-keys.ts';
import { bootstrapTokenStore } from '../store/bootstrap-token-store.ts';
import { changeLog } from '../store/change-log.ts';
import { nodeKeyStore } from '../store/node-key-store.ts';
import { refusalsAdded } from '../store/refusal-store.ts';
import { authorizer } from './access/authorizer.ts';
import { answerEnrolment } from './access/enrolment.ts';
import { answerSelfReviews } from './access/self-review.ts';
import { nodeGraph } from './admission/node-graph.ts';
import { releaseHolders } from './agents/release-holders.ts';
import { issuerDocuments } from './discovery/issuer-documents.ts';
import { openApiDocuments } from './discovery/openapi.ts';
import { staticDocuments } from './discovery/static-documents.ts';
import { viewerRules } from './kinds/default-policies.ts';
import { nodes } from './kinds/nodes.ts';
import { findResource, resources } from './kinds/registry.ts';
import { reviews } from './kinds/self-reviews.ts';
import { answerNodeLogs } from './logs/node-logs.ts';
import { answerMetrics } from './metrics/answer-metrics.ts';
import type { AnswerPodLog, AnswerWatch, ServeDependencies } from './request/call.ts';
import type { Gzip } from './request/response-size.ts';
import { serveApi } from './serve.ts';
import { shardsOf } from './storage/cluster-objects.ts';
import { composeStorages } from './storage/compose-storages.ts';
import type { ReadYaml } from './verbs/server-side-apply.ts';
import { answerLongPoll } from './watch/long-poll.ts';

/** The release of this project, as `kubectl version` shows it. */
export const NODEKEEPER_VERSION = '0.1.0';

export interface ApiOptions {
  readonly items: ItemStore;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Waits between attempts at a contended write, and between two reads of a watch. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly log: Log;
  readonly policy: Policy;
  /** Digest of a text, safe in a URL. */
  readonly hash: (text: string) => string;
  /**
   * False in a process that may not write. Objects of every new cluster then appear after another process created them.
   */
  readonly makesInitialObjects?: boolean;
  /** Certificates in PEM that clients in pods trust. Absent: none are published. */
  readonly apiAuthorities?: () => string;
  /** Absent: every watch is a long poll. */
  readonly answerWatch?: AnswerWatch;
  /** Absent: logs are not served. */
  readonly answerPodLog?: AnswerPodLog;
  /** Absent in a process that serves no writes. */
  readonly readYaml?: ReadYaml;
  readonly gzip: Gzip;
  /** Absent: this process enrols no machines. */
  readonly readPublicKey?: ReadPublicKey;
  /** Signs tokens of service accounts, and reads their keys. Absent: none are issued. */
  readonly accountTokens?: { readonly issuer: AccountTokenIssuer; readonly keys: Pick<AccountKeys, 'all'> };
  /** Describes instances that enrol by their identity documents. Absent: such enrolment is refused. */
  readonly cloud?: Pick<Cloud, 'describeInstances'>;
  /** Receives a line for each write by a person. Absent: no audit log. */
  readonly auditTrail?: AuditTrail;
  /** Limits the requests of each user. Absent: no limit. */
  readonly limits?: RequestLimits;
  /** Time that this thread has computed, from any origin. Milliseconds. Absent: `limits` limits the rate only. */
  readonly busyMs?: () => number;
}

export const composeApi = (options: ApiOptions): ((request: HttpRequest) => Promise<HttpResponse>) =>
  serveApi(apiDependencies(options));

/** With the caches of a process: create them once. */
export function apiDependencies(options: ApiOptions): ServeDependencies {
  const { clock, random, policy } = options;
  const changes = changeLog({ items: options.items, clock, shardsOf });
  const { storageOf, budgets, policies, namespacePolicies } = composeStorages({ ...options, changes });
  const access = authorizer({ policies, nodeGraph: nodeGraph({ storageOf }), viewerRules });
  return {
    storageOf,
    budgetsCovering: budgets.covering,
    namespacePolicies,
    readHolders: releaseHolders({ storageOf }),
    authorizer: access,
    descriptorOf: findResource,
    random,
    podEvictionTimeoutSeconds: policy.podEvictionTimeoutSeconds,
    maxPlannedSilenceSeconds: policy.maxPlannedSilenceSeconds,
    ...defined({ podEvictionTimeoutOn: podEvictionTimeoutOn(policy) }),
    cidrSets: cidrSetsOf(policy),
    authenticator: options.authenticator,
    clock,
    log: options.log,
    noteRefusal: refusedSignIns(options.log),
    noteFault: failedRequests(options.log, REQUEST_FAILED),
    changes,
    pause: options.pause,
    answerWatch: options.answerWatch ?? answerLongPoll,
    gzip: options.gzip,
    ...defined({
      readYaml: options.readYaml,
      auditTrail: options.auditTrail,
      answerPodLog: options.answerPodLog,
      nodeLogs: options.answerPodLog === undefined ? undefined : answerNodeLogs(options.items),
      throttle: throttleOf(options),
    }),
    staticDocument: staticDocuments(
      { version: NODEKEEPER_VERSION },
      openApiDocuments(
        createOpenApi({
          resources: [...resources, ...reviews.map((each) => ({ ...each, subresources: [] }))],
          serverVersion: NODEKEEPER_VERSION,
          hash: options.hash,
        }),
      ),
    ),
    ...enrolmentOf(options, storageOf),
    ...accountTokensOf(options),
    metrics: answerMetrics({ items: options.items, clock, policy, storageOf, descriptorOf: findResource }),
    selfReview: answerSelfReviews(access),
  };
}

function throttleOf({ limits, busyMs, items, log }: ApiOptions): RequestThrottle | undefined {
  if (limits === undefined) return undefined;
  const noteFault = failedRequests(log, 'refused requests could not be counted');
  return requestThrottle(limits, {
    busyMs,
    onRefused: refusedRequests({ log, store: refusalsAdded(items), noteFault }),
  });
}

function accountTokensOf({ accountTokens }: ApiOptions): Pick<ServeDependencies, 'issueToken' | 'answerIssuer'> {
  if (accountTokens === undefined) return {};
  return { issueToken: accountTokens.issuer.issue, answerIssuer: issuerDocuments(accountTokens.keys) };
}

function enrolmentOf(
  { items, random, pause, readPublicKey, cloud }: ApiOptions,
  storageOf: ServeDependencies['storageOf'],
): Pick<ServeDependencies, 'enrol'> {
  if (readPublicKey === undefined) return {};
  const identities = nodeKeyStore(items);
  const tokens = bootstrapTokenStore(items);
  return {
    enrol: answerEnrolment({
      identities,
      tokens,
      hasNode: async (nodeName) => (await storageOf(nodes).get('', nodeName)) !== undefined,
      random,
      pause,
      readPublicKey,
      ...defined({ cloud }),
    }),
  };
}

/** Empty also for unusable CIDRs. parsePolicy refuses those before. */
function cidrSetsOf(policy: Policy): readonly CidrSet[] {
  const creation = createCidrSets(policy);
  return creation.kind === 'created' ? creation.sets : [];
}
