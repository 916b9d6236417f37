/** Composes the API over any item store: the same in the function, in tests and in simulations. */

import type { AccountKeys, AccountTokenIssuer } from '../../shared/access/account-tokens.ts';
import { bootstrapTokenStore } from '../../shared/access/bootstrap-token-store.ts';
import { nodeKeyStore } from '../../shared/access/node-key-store.ts';
import type { ReadPublicKey } from '../../shared/access/node-keys.ts';
import { admitByPolicies, type PolicyAdmission } from '../../shared/admission/admit-by-policies.ts';
import type { AdmissionWebhooks, AdmittedCall } from '../../shared/admission/admitted-write.ts';
import type { AnswerPodLog, AnswerWatch, InTurn } from '../../shared/api/call.ts';
import { type RequestOptions, requestDependencies } from '../../shared/api/request-dependencies.ts';
import { serveApi } from '../../shared/api/serve.ts';
import { answerLongPoll } from '../../shared/api/watch/long-poll.ts';
import { NODEKEEPER_VERSION } from '../../shared/config/version.ts';
import { factLedger } from '../../shared/decisions/ledger.ts';
import { defined } from '../../shared/defined.ts';
import type { CidrSet } from '../../shared/fleet/cidrs/cidr-set.ts';
import { createCidrSets } from '../../shared/fleet/cidrs/cluster-cidrs.ts';
import type { Cloud } from '../../shared/fleet/instances/cloud.ts';
import { podEvictionTimeoutOn } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { CustomKinds } from '../../shared/kinds/custom-resources/kinds.ts';
import type { ResourceDescriptor } from '../../shared/kinds/descriptor.ts';
import { nodes } from '../../shared/kinds/nodes/serve.ts';
import { findResource, resources } from '../../shared/kinds/registry.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import { readHistory } from '../../shared/store/store-history.ts';
import type { EnrolDependencies } from './access/enrol-node.ts';
import { answerEnrolment } from './access/enrolment.ts';
import { answerSelfReviews } from './access/self-review.ts';
import { refuseSigningRequests } from './access/signing-requester.ts';
import { policyEnforcers } from './admission/policy-enforcers.ts';
import { answerNodeVolumes } from './agents/node-volumes.ts';
import { releaseHolders } from './agents/release-holders.ts';
import { apiAnswers } from './answers.ts';
import type { AcceptNodeSession } from './connections/node-sessions.ts';
import type { OpenConnection } from './connections/pod-connection.ts';
import type { ServeDependencies } from './dependencies.ts';
import { createdOnly } from './discovery/created-only.ts';
import { issuerDocuments } from './discovery/issuer-documents.ts';
import { openApiDocuments } from './discovery/openapi.ts';
import { type StaticDocuments, staticDocuments } from './discovery/static-documents.ts';
import { answerNodeLogs } from './logs/node-logs.ts';
import type { MetricFamily } from './metrics/open-metrics.ts';
import type { OpenApi, OpenApiResource } from './openapi/openapi.ts';

export interface ApiOptions extends RequestOptions {
  /** Names the cluster in tokens of machines. Absent: hubs do not learn it. */
  readonly clusterId?: string;
  /** Names the tables, where a restore makes others. Absent: it does not. */
  readonly tablesName?: string;
  /** Digest of a text, safe in a URL. */
  readonly hash: (text: string) => string;
  /** Absent: every watch is a long poll. */
  readonly answerWatch?: AnswerWatch;
  /** Absent: logs are not served. */
  readonly answerPodLog?: AnswerPodLog;
  /** For lists. Absent: they are read at once. */
  readonly inTurn?: InTurn;
  /** Absent: the transport cannot upgrade a connection. */
  readonly openConnection?: OpenConnection;
  readonly nodeSessions?: AcceptNodeSession;
  /** Absent: no admission webhooks are called. */
  readonly webhooksOf?: (parts: Pick<ServeDependencies, 'storageOf'>) => AdmissionWebhooks;
  /** A controller of this process signs CertificateSigningRequests. */
  readonly signsCertificates?: boolean;
  /** Absent: this process enrols no machines. */
  readonly readPublicKey?: ReadPublicKey;
  /** Signs tokens of service accounts, and reads their keys. Absent: none are issued. */
  readonly accountTokens?: { readonly issuer: AccountTokenIssuer; readonly keys: Pick<AccountKeys, 'all'> };
  /** Metrics of the process, beside those of the cluster. Absent: there are none. */
  readonly processFamilies?: () => readonly MetricFamily[];
  /** Describes instances that enrol by their identity documents. Absent: such enrolment is refused. */
  readonly cloud?: Pick<Cloud, 'describeInstances'>;
}

export const composeApi = (options: ApiOptions): Api['serve'] => composeApiAndAdmission(options).serve;

interface Api {
  serve(request: HttpRequest): Promise<HttpResponse>;
  /** Policies and webhooks for a write that is no request. */
  admission(call: AdmittedCall): PolicyAdmission;
}

export function composeApiAndAdmission(options: ApiOptions): Api {
  const dependencies = serveDependencies(options);
  return {
    serve: serveApi(dependencies, apiAnswers(dependencies)),
    admission: (call) => admitByPolicies(dependencies, call),
  };
}

function serveDependencies(options: ApiOptions): ServeDependencies {
  const { clock, policy } = options;
  const { storages, ...common } = requestDependencies(options);
  const { storageOf, authorizer } = common;
  const dependencies: ServeDependencies = {
    ...common,
    history: historyOf(options),
    budgetsCovering: storages.budgets.covering,
    admissionPolicies: storages.admissionPolicies,
    namespacePolicies: storages.namespacePolicies,
    readHolders: releaseHolders({ storageOf }),
    podEvictionTimeoutSeconds: policy.podEvictionTimeoutSeconds,
    maxPlannedSilenceSeconds: policy.maxPlannedSilenceSeconds,
    unenforcedKinds: policy.unenforcedKinds,
    policyEnforcers: () => policyEnforcers(options.items),
    signsCertificates: options.signsCertificates === true,
    ...defined({ podEvictionTimeoutOn: podEvictionTimeoutOn(policy) }),
    cidrSets: cidrSetsOf(policy),
    answerWatch: options.answerWatch ?? answerLongPoll,
    nodeVolumes: answerNodeVolumes(options.items),
    ...defined({
      clusterId: options.clusterId,
      answerPodLog: options.answerPodLog,
      inTurn: options.inTurn,
      nodeLogs: options.answerPodLog === undefined ? undefined : answerNodeLogs(options.items),
      webhooks: options.webhooksOf?.({ storageOf }),
      openConnection: options.openConnection,
      nodeSessions: options.nodeSessions,
    }),
    staticDocument: documents(options.hash, common.customs),
    ...enrolmentOf(options, storageOf),
    ...accountTokensOf(options),
    async metrics(request) {
      const { answerMetrics } = await import('./metrics/answer-metrics.ts');
      const { items, processFamilies } = options;
      const source = { items, clock, policy, storageOf, descriptorOf: findResource, ...defined({ processFamilies }) };
      return await answerMetrics(source)(request);
    },
    selfReview: answerSelfReviews(authorizer),
    async siteMoves(asked) {
      const { answerSiteMove } = await import('./agents/site-moves.ts');
      return await answerSiteMove({ ...dependencies, ledger: factLedger(options.items, policy) }, asked);
    },
  };
  return dependencies;
}

/** Read once: a restore needs another process. */
function historyOf({ items, tablesName = '' }: ApiOptions): () => Promise<string> {
  let known: string | undefined;
  return async () => {
    known ??= `${tablesName}#${await readHistory(items)}`;
    return known;
  };
}

/**
 * Version, discovery and OpenAPI.
 *
 * @param hash digest of a text, safe in a URL
 * @param customs kinds that definitions add. Absent: none are described
 */
export function documents(hash: ApiOptions['hash'], customs?: CustomKinds): StaticDocuments {
  const load = async (added: readonly OpenApiResource[], base?: OpenApi): Promise<OpenApi> => {
    const [{ createOpenApi }, { describe }] = await Promise.all([
      import('./openapi/openapi.ts'),
      import('../../shared/kinds/descriptions/describe.ts'),
    ]);
    return createOpenApi({ resources: added, serverVersion: NODEKEEPER_VERSION, hash, describe, ...defined({ base }) });
  };
  let builtIn: Promise<OpenApi> | undefined;
  let whole: { readonly added: readonly ResourceDescriptor[]; readonly openApi: Promise<OpenApi> } | undefined;
  return staticDocuments(
    { version: NODEKEEPER_VERSION },
    openApiDocuments(async () => {
      builtIn ??= load([...resources, ...createdOnly.map((each) => ({ ...each, subresources: [] }))]);
      const base = await builtIn;
      const added = (await customs?.described()) ?? [];
      if (added.length === 0) return base;
      // Descriptors are made again when their definitions change.
      const isSame = whole?.added.length === added.length && whole.added.every((each, index) => each === added[index]);
      if (whole === undefined || !isSame) whole = { added, openApi: load(added, base) };
      return whole.openApi;
    }),
    async () => (await customs?.discovered()) ?? [],
  );
}

function accountTokensOf({ accountTokens }: ApiOptions): Pick<ServeDependencies, 'issueToken' | 'answerIssuer'> {
  if (accountTokens === undefined) return {};
  return { issueToken: accountTokens.issuer.issue, answerIssuer: issuerDocuments(accountTokens.keys) };
}

function enrolmentOf(
  { readPublicKey, ...options }: ApiOptions,
  storageOf: ServeDependencies['storageOf'],
): Pick<ServeDependencies, 'enrol' | 'refuseSigningRequest'> {
  const enrolment = enrolmentOver(options, storageOf);
  return {
    refuseSigningRequest: refuseSigningRequests(options.items, enrolment),
    ...(readPublicKey !== undefined && { enrol: answerEnrolment({ ...enrolment, readPublicKey }) }),
  };
}

/** What decides on enrolments, over the store. */
export const enrolmentOver = (
  { items, random, pause, cloud }: Pick<ApiOptions, 'items' | 'random' | 'pause' | 'cloud'>,
  storageOf: ServeDependencies['storageOf'],
): EnrolDependencies => ({
  random,
  pause,
  ...defined({ cloud }),
  identities: nodeKeyStore(items),
  tokens: bootstrapTokenStore(items),
  hasNode: async (nodeName) => (await storageOf(nodes).get('', nodeName)) !== undefined,
});

/** Empty also for unusable CIDRs. parsePolicy refuses those before. */
function cidrSetsOf(policy: Policy): readonly CidrSet[] {
  const creation = createCidrSets(policy);
  return creation.kind === 'created' ? creation.sets : [];
}
