import type { AccountTokenIssuer } from '../../shared/access/account-tokens.ts';
import type { AdmissionDependencies } from '../../shared/admission/admit-by-policies.ts';
import type { AdmissionWebhooks } from '../../shared/admission/admitted-write.ts';
import type { Call, ReadDependencies, UnstoredRequest } from '../../shared/api/call.ts';
import type { CidrSet } from '../../shared/fleet/cidrs/cidr-set.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { ActingNodes } from '../../shared/kinds/effects.ts';
import type { NamespacePolicies } from '../../shared/kinds/quotas/namespace-policies.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import type { RefuseSigningRequest } from './access/signing-requester.ts';
import type { AnswerNodeVolumes } from './agents/node-volumes.ts';
import type { ReadHolders } from './agents/release-holders.ts';
import type { AcceptNodeSession } from './connections/node-sessions.ts';
import type { OpenConnection } from './connections/pod-connection.ts';
import type { AnswerIssuer } from './discovery/issuer-documents.ts';
import type { StaticDocuments } from './discovery/static-documents.ts';
import type { AnswerNodeLogs } from './logs/node-logs.ts';

/** Dependencies of the verbs, created once per process by compose.ts. */
export interface ApiDependencies extends Pick<ReadDependencies, 'random' | 'pause'>, AdmissionDependencies {
  /** Absent: no webhooks are called, and configurations of them are refused. */
  readonly webhooks?: AdmissionWebhooks;
  /** The CIDRs from which nodes get their pod CIDRs. Empty while allocation is off. */
  readonly cidrSets: readonly CidrSet[];
  /** tolerationSeconds of the default tolerations. Seconds. */
  readonly podEvictionTimeoutSeconds: number;
  /** How far ahead a node may promise silence of its own. Seconds; 0: it may not. */
  readonly maxPlannedSilenceSeconds: number;
  /** Whether kinds that nothing acts on are stored with a warning, or refused. */
  readonly unenforcedKinds: Policy['unenforcedKinds'];
  /** Nodes that enforce NetworkPolicies. @throws StoreFault */
  readonly policyEnforcers: () => Promise<ActingNodes>;
  /** False: CertificateSigningRequests are stored, and their creation is answered with a warning. */
  readonly signsCertificates: boolean;
  /** The same for a node with these labels. Seconds. Absent: no profile has other seconds. */
  readonly podEvictionTimeoutOn?: (nodeLabels: Readonly<Record<string, string>> | undefined) => number;
  /** The disruption budgets of a pod, each with its current status. */
  readonly budgetsCovering: (pod: KubeObject) => Promise<readonly KubeObject[]>;
  /** ResourceQuotas and LimitRanges, for admission. */
  readonly namespacePolicies: NamespacePolicies;
}

/** What every answer of the API needs. */
export interface ServeDependencies extends ApiDependencies, ReadDependencies {
  /** Names the cluster in tokens of machines, for those who keep a copy of it. */
  readonly clusterId?: string;
  /** Names the history of the store. It does not change while this process runs. @throws StoreFault */
  readonly history: () => Promise<string>;
  readonly readHolders: ReadHolders;
  /** Serves the agents that send output. Absent: logs are not served here. */
  readonly nodeLogs?: AnswerNodeLogs;
  readonly nodeVolumes: AnswerNodeVolumes;
  /** Opens exec, attach and port-forward. Absent: the transport cannot upgrade a connection. */
  readonly openConnection?: OpenConnection;
  /** Accepts the connections of agents that answer them. */
  readonly nodeSessions?: AcceptNodeSession;
  /** Handles what hubs of sites have decided. */
  readonly siteMoves: (asked: UnstoredRequest) => Promise<HttpResponse>;
  /** Responses of version, discovery, OpenAPI and health paths. undefined: no such path. */
  readonly staticDocument: StaticDocuments;
  /** The metrics of the cluster, for an authorized request. */
  readonly metrics: (request: HttpRequest) => Promise<HttpResponse>;
  /** Signs a token of a service account. Absent: this process issues none. */
  readonly issueToken?: AccountTokenIssuer['issue'];
  /** Documents for those who verify these tokens. */
  readonly answerIssuer?: AnswerIssuer;
  /** Handles the POST of a NodeIdentity. Absent: this process creates no identities. */
  readonly enrol?: (call: Call) => Promise<HttpResponse>;
  /** Limits what machines and bootstrap tokens ask for. */
  readonly refuseSigningRequest: RefuseSigningRequest;
  /** Handles the self reviews, which are created and never stored. undefined: another resource. */
  readonly selfReview: (call: Pick<Call, 'target' | 'request' | 'user' | 'nowMs'>) => Promise<HttpResponse | undefined>;
}
