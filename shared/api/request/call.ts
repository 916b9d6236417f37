/** One request on a resource, as the verbs get it, and what its query asks for. */

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
import type { AuditTrail } from '../../ports/audit-trail.ts';
import type { Authenticator } from '../../ports/authenticator.ts';
import type { Clock } from '../../ports/clock.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { Log } from '../../ports/log.ts';
import type { ChangeLog } from '../../store/change-log.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { ReadYaml } from '../verbs/apply.ts';
import type { WatchCall, WatchSource } from '../watch/watch-request.ts';
import type { Shape } from './shape.ts';

export interface ServeDependencies extends ApiDependencies {
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly log: Log;
  readonly changes: ChangeLog;
  readonly answerWatch: AnswerWatch;
  /** Where acts of people are kept; absent: nowhere. */
  readonly auditTrail?: AuditTrail;
  readonly noteRefusal: NoteRefusal;
  readonly noteFault: NoteFault;
  /** Absent: nobody is slowed down. */
  readonly throttle?: RequestThrottle;
  readonly readYaml: ReadYaml;
  readonly gzip: (text: string) => Uint8Array;
  readonly descriptorOf: (group: string, version: string, resource: string) => ResourceDescriptor | undefined;
  /** Answers of fixed paths (version, discovery, OpenAPI, health); undefined: there is nothing at this path. */
  readonly fixed: (path: string, request: HttpRequest) => HttpResponse | undefined;
  /** Answers the POST of a NodeIdentity. Absent: identities are not made here. */
  readonly enrol?: (call: Call) => Promise<HttpResponse>;
  /** Answers of create-only resources that store nothing (the self reviews). */
  readonly virtual: (target: ResourceTarget, request: HttpRequest, user: UserInfo) => HttpResponse | undefined;
}

export interface Call {
  readonly request: HttpRequest;
  readonly descriptor: ResourceDescriptor;
  readonly target: ResourceTarget;
  readonly shape: Shape;
  readonly nowMs: number;
  readonly user: UserInfo;
}

/** How a watch that was authorized and understood gets to the client: as a long poll, a stream, a redirect. */
export type AnswerWatch = (source: WatchSource, watch: WatchCall, call: Call) => Promise<HttpResponse>;

export const apiVersionOf = ({ group, version }: Pick<ResourceDescriptor, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`;

/** The schema objects of a resource are read with. */
export function schemaFor(descriptor: ResourceDescriptor): StructSchema {
  const schema = schemaOf(apiVersionOf(descriptor), descriptor.kind);
  if (schema === undefined) throw new Error(`no schema of ${apiVersionOf(descriptor)} ${descriptor.kind}`);
  return schema;
}

export function selectorsOf(descriptor: ResourceDescriptor, query: URLSearchParams) {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '');
  if (labels.kind === 'malformed') throw status.badRequest(labels.message);
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  if (fields.kind === 'malformed') throw status.badRequest(fields.message);
  const unsupported = unsupportedField(fields, descriptor);
  if (unsupported !== undefined) throw status.badRequest(unsupported);
  return { labels, fields };
}
