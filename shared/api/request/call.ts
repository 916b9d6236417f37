/** The request that a verb receives, what the verbs depend on, and the selectors of a query. */

import type { UserInfo } from '../../domain/access/user-info.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import type { NoteFault } from '../../kube/request/log-throttle.ts';
import type { NoteRefusal } from '../../kube/request/refused-sign-ins.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import type { RequestThrottle } from '../../kube/request/request-throttle.ts';
import { schemaOf } from '../../kube/schema/kinds.ts';
import type { StructSchema } from '../../kube/schema/schema.ts';
import { parseFieldSelector, parseLabelSelector, unsupportedField } from '../../kube/selectors.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { AccountTokenIssuer } from '../../ports/account-tokens.ts';
import type { AuditTrail } from '../../ports/audit-trail.ts';
import type { Authenticator } from '../../ports/authenticator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { Log } from '../../ports/log.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import type { Authorizer } from '../access/authorizer.ts';
import type { NodeUpdateDependencies } from '../agents/node-updates.ts';
import type { AnswerIssuer } from '../discovery/issuer-documents.ts';
import type { AnswerNodeLogs } from '../logs/node-logs.ts';
import type { PodLog } from '../logs/pod-log.ts';
import type { ReadYaml } from '../verbs/server-side-apply.ts';
import type { WatchCall, WatchSource } from '../watch/watch-request.ts';
import type { Shape } from './response-shape.ts';

export interface ServeDependencies extends NodeUpdateDependencies {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly log: Log;
  readonly changes: ChangeLog;
  readonly answerWatch: AnswerWatch;
  /** Delivers the output of a container. Absent: logs are not served. */
  readonly answerPodLog?: AnswerPodLog;
  /** Serves the agents that send output. Absent: logs are not served here. */
  readonly nodeLogs?: AnswerNodeLogs;
  /** Receives a line for each write by a person. Absent: no audit log. */
  readonly auditTrail?: AuditTrail;
  readonly noteRefusal: NoteRefusal;
  readonly noteFault: NoteFault;
  /** Limits the rate of requests per user. Absent: no limit. */
  readonly throttle?: RequestThrottle;
  /** Absent: this process reads no YAML. */
  readonly readYaml?: ReadYaml;
  readonly gzip: (text: string) => Uint8Array;
  readonly descriptorOf: (group: string, version: string, resource: string) => ResourceDescriptor | undefined;
  /** Responses of version, discovery, OpenAPI and health paths. undefined: no such path. */
  readonly staticDocument: (path: string, request: HttpRequest) => HttpResponse | undefined;
  /** The metrics of the cluster, for an authorized request. */
  readonly metrics: (request: HttpRequest) => Promise<HttpResponse>;
  /** Signs a token of a service account. Absent: this process issues none. */
  readonly issueToken?: AccountTokenIssuer['issue'];
  /** Documents for those who verify these tokens. */
  readonly answerIssuer?: AnswerIssuer;
  /** Handles the POST of a NodeIdentity. Absent: this process creates no identities. */
  readonly enrol?: (call: Call) => Promise<HttpResponse>;
  /** Handles the self reviews, which are created and never stored. undefined: another resource. */
  readonly selfReview: (call: Pick<Call, 'target' | 'request' | 'user' | 'nowMs'>) => Promise<HttpResponse | undefined>;
}

/** An authorized request on one resource. */
export interface Call {
  readonly request: HttpRequest;
  readonly descriptor: ResourceDescriptor;
  readonly target: ResourceTarget;
  /** The form of the response body. */
  readonly shape: Shape;
  /** When the request arrived. */
  readonly nowMs: number;
  /** The user that the request acts as. */
  readonly user: UserInfo;
  /** The user who was authenticated. Another one than `user` in a request with impersonation. */
  readonly caller: UserInfo;
  /** Why the request would be refused at this time, for what continues after its start; undefined: it would not. */
  readonly accessRefusal: (nowMs: number) => Promise<status.StatusError | undefined>;
}

/** Delivers an authorized watch to the client: as a long poll, a stream or a redirect. */
export type AnswerWatch = (source: WatchSource, watch: WatchCall, call: Call) => Promise<HttpResponse>;

/** Delivers an authorized log to the client: as a redirect or as a stream. */
export type AnswerPodLog = (log: PodLog, call: Call) => Promise<HttpResponse>;

export const apiVersionOf = ({ group, version }: Pick<ResourceDescriptor, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`;

/** The schema of the objects of a resource. @throws Error for a kind without a schema, a fault of ours */
export function schemaFor(descriptor: ResourceDescriptor): StructSchema {
  const schema = schemaOf(apiVersionOf(descriptor), descriptor.kind);
  if (schema === undefined) throw new Error(`no schema for ${apiVersionOf(descriptor)} ${descriptor.kind}`);
  return schema;
}

/** @throws StatusError 400 when the body names another kind than `kind` */
export function refuseOtherKind(kind: string, { kind: named = '', apiVersion = '' }: KubeObject): void {
  if (named === '' || named === kind) return;
  throw status.badRequest(
    `${named} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${kind}: converting (${named}) to (${kind}): unknown conversion`,
  );
}

/** @throws StatusError 400 when a selector is malformed, or names a field that the kind does not support */
export function selectorsOf(descriptor: ResourceDescriptor, query: URLSearchParams) {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '');
  if (labels.kind === 'malformed') throw status.badRequest(labels.message);
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  if (fields.kind === 'malformed') throw status.badRequest(fields.message);
  const unsupported = unsupportedField(fields, descriptor);
  if (unsupported !== undefined) throw status.badRequest(unsupported);
  return { labels, fields };
}
