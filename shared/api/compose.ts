/** Composes the API over any item store: the same in the function, in tests and in simulations. */

import type { CidrSet } from '../domain/cidrs/cidr-set.ts';
import { createCidrSets } from '../domain/cidrs/cluster-cidrs.ts';
import { defined } from '../domain/defined.ts';
import { podEvictionTimeoutOn } from '../domain/nodes/node-profile.ts';
import type { Policy } from '../domain/policy.ts';
import { createOpenApi } from '../kube/openapi/openapi.ts';
import type { AccountKeys, AccountTokenIssuer } from '../ports/account-tokens.ts';
import type { Cloud } from '../ports/cloud.ts';
import type { HttpRequest, HttpResponse } from '../ports/http.ts';
import type { ReadPublicKey } from '../ports/node-keys.ts';
import { bootstrapTokenStore } from '../store/bootstrap-token-store.ts';
import { nodeKeyStore } from '../store/node-key-store.ts';
import { answerEnrolment } from './access/enrolment.ts';
import { answerSelfReviews } from './access/self-review.ts';
import { releaseHolders } from './agents/release-holders.ts';
import { apiAnswers } from './answers.ts';
import type { ServeDependencies } from './dependencies.ts';
import { issuerDocuments } from './discovery/issuer-documents.ts';
import { openApiDocuments } from './discovery/openapi.ts';
import { staticDocuments } from './discovery/static-documents.ts';
import { nodes } from './kinds/nodes.ts';
import { findResource, resources } from './kinds/registry.ts';
import { reviews } from './kinds/self-reviews.ts';
import { answerNodeLogs } from './logs/node-logs.ts';
import { answerMetrics } from './metrics/answer-metrics.ts';
import type { AnswerPodLog, AnswerWatch } from './request/call.ts';
import { type RequestOptions, requestDependencies } from './request-dependencies.ts';
import { serveApi } from './serve.ts';
import { answerLongPoll } from './watch/long-poll.ts';

/** The release of this project, as `kubectl version` shows it. */
export const NODEKEEPER_VERSION = '0.1.0';

export interface ApiOptions extends RequestOptions {
  /** Digest of a text, safe in a URL. */
  readonly hash: (text: string) => string;
  /** Absent: every watch is a long poll. */
  readonly answerWatch?: AnswerWatch;
  /** Absent: logs are not served. */
  readonly answerPodLog?: AnswerPodLog;
  /** Absent: this process enrols no machines. */
  readonly readPublicKey?: ReadPublicKey;
  /** Signs tokens of service accounts, and reads their keys. Absent: none are issued. */
  readonly accountTokens?: { readonly issuer: AccountTokenIssuer; readonly keys: Pick<AccountKeys, 'all'> };
  /** Describes instances that enrol by their identity documents. Absent: such enrolment is refused. */
  readonly cloud?: Pick<Cloud, 'describeInstances'>;
}

export function composeApi(options: ApiOptions): (request: HttpRequest) => Promise<HttpResponse> {
  const dependencies = serveDependencies(options);
  return serveApi(dependencies, apiAnswers(dependencies));
}

function serveDependencies(options: ApiOptions): ServeDependencies {
  const { clock, policy } = options;
  const { storages, ...common } = requestDependencies(options);
  const { storageOf, authorizer } = common;
  return {
    ...common,
    budgetsCovering: storages.budgets.covering,
    namespacePolicies: storages.namespacePolicies,
    readHolders: releaseHolders({ storageOf }),
    podEvictionTimeoutSeconds: policy.podEvictionTimeoutSeconds,
    maxPlannedSilenceSeconds: policy.maxPlannedSilenceSeconds,
    ...defined({ podEvictionTimeoutOn: podEvictionTimeoutOn(policy) }),
    cidrSets: cidrSetsOf(policy),
    answerWatch: options.answerWatch ?? answerLongPoll,
    ...defined({
      answerPodLog: options.answerPodLog,
      nodeLogs: options.answerPodLog === undefined ? undefined : answerNodeLogs(options.items),
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
    selfReview: answerSelfReviews(authorizer),
  };
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
