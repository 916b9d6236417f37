/** The request that a verb receives, what the verbs depend on, and the selectors of a query. */

import type { AuditTrail } from '../access/audit.ts';
import type { Authenticator } from '../access/authenticator.ts';
import type { Authorizer } from '../access/authorizer.ts';
import type { RequestThrottle } from '../access/request-throttle.ts';
import type { UserInfo } from '../access/user-info.ts';
import type { Clock, RandomSource } from '../clock.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { Verb } from '../kinds/stored-resource.ts';
import type { HttpRequest, HttpResponse } from '../kubernetes/http.ts';
import type { NoteFault, NoteRefusal } from '../kubernetes/log-throttle.ts';
import type { ResourceTarget } from '../kubernetes/request.ts';
import type { ReadYaml } from '../kubernetes/request-body.ts';
import { parseFieldSelector, parseLabelSelector, unsupportedField } from '../kubernetes/selectors.ts';
import * as status from '../kubernetes/status.ts';
import type { Log } from '../observability/log.ts';
import type { ChangeLog } from '../store/change-log.ts';
import type { PodLog } from './logs/pod-log.ts';
import type { ResourceStorage } from './resource-storage.ts';
import type { Gzip, Shape } from './response-body.ts';
import type { WatchCall, WatchSource } from './watch/watch-request.ts';

/** What receiving and authorizing a request needs. */
export interface RequestDependencies {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** Receives a line for each write by a person. Absent: no audit log. */
  readonly auditTrail?: AuditTrail;
  readonly noteRefusal: NoteRefusal;
  readonly noteFault: NoteFault;
  /** Limits the rate of requests per user. Absent: no limit. */
  readonly throttle?: RequestThrottle;
  /** Absent: this process reads no YAML. */
  readonly readYaml?: ReadYaml;
  readonly gzip: Gzip;
  /** At once for a built-in kind. */
  readonly descriptorOf: (
    group: string,
    version: string,
    resource: string,
  ) => ResourceDescriptor | undefined | Promise<ResourceDescriptor | undefined>;
}

/** What watches and logs need besides. */
/** Does the work when the user has a share of the process for it. */
export type InTurn = <T>(user: string, work: () => Promise<T>) => Promise<T>;

export interface ReadDependencies extends RequestDependencies {
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  readonly changes: ChangeLog;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly answerWatch: AnswerWatch;
  /** For lists. Absent: at once, as each execution environment has one request. */
  readonly inTurn?: InTurn;
  /** Delivers the output of a container. Absent: logs are not served. */
  readonly answerPodLog?: AnswerPodLog;
}

/** What a process answers. Every other request is 404. */
export interface Answers {
  readonly verbs: Readonly<Partial<Record<Verb, (call: Call) => Promise<HttpResponse>>>>;
  /** Needs no credentials. undefined: this path does. */
  readonly publicPath?: (
    path: string,
    request: HttpRequest,
  ) => HttpResponse | undefined | Promise<HttpResponse | undefined>;
  /** GET of a path that is not a resource, authorized. undefined: no such path. */
  readonly path?: (path: string, request: HttpRequest, nowMs: number) => Promise<HttpResponse | undefined>;
  /** Requests on what is not stored as an object of its kind. undefined: the request is another one. */
  readonly unstored?: (request: UnstoredRequest) => Promise<HttpResponse> | undefined;
}

/** An authenticated request that is not authorized yet. */
export interface UnstoredRequest extends Pick<Call, 'request' | 'target' | 'user' | 'nowMs'> {
  readonly verb: Verb;
  /** @param verb absent: that of the request. @throws StatusError 403 */
  readonly requireAccess: (verb?: Verb) => Promise<void>;
  /**
   * A line about this request is written to the audit log when it is answered. @param verb absent: that of the request
   */
  readonly audit: (verb?: Verb) => void;
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
