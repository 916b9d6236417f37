/** POST of a NodeIdentity: reads what is asked, lets enrolNode decide by who asks, answers as the API answers. */
import { BOOTSTRAP_GROUP, BOOTSTRAP_USER_PREFIX } from '../../domain/access/bootstrap-token.ts';
import { INSTANCE_USER_PREFIX } from '../../domain/access/instance-identity.ts';
import { KEY_ID_EXTRA } from '../../domain/access/node-identity.ts';
import { nodeIdentity } from '../../domain/access/node-restriction.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import { recordOf } from '../../kube/normal-form.ts';
import { decodeObject, fieldValidationOf, readObjectBody, refuseTooLarge } from '../../kube/request/body.ts';
import { dryRunOf } from '../../kube/request/options.ts';
import { json, warningHeaders } from '../../kube/request/respond.ts';
import { nodeIdentity as nodeIdentitySchema } from '../../kube/schema/identity.ts';
import * as status from '../../kube/status.ts';
import { formatTime } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import { invalidValue } from '../../kube/validation/causes.ts';
import type { HttpResponse } from '../../ports/http.ts';
import type { ReadPublicKey } from '../../ports/node-keys.ts';
import { nodeidentities } from '../kinds/identities.ts';
import { apiVersionOf, type Call } from '../request/call.ts';
import { shapeObject } from '../request/response-shape.ts';
import { identityObject } from '../storage/identity-storage.ts';
import { type EnrolAnswer, type EnrolDependencies, type EnrolledBy, enrolNode } from './enrol-node.ts';

/** A key has about 200 bytes; labels may be more. */
const BODY_BYTES_MAX = 16_384;

export interface EnrolmentDependencies extends EnrolDependencies {
  readonly readPublicKey: ReadPublicKey;
}

export type AnswerEnrolment = (call: Call) => Promise<HttpResponse>;

export const answerEnrolment =
  (dependencies: EnrolmentDependencies): AnswerEnrolment =>
  async (call) => {
    const { request, user, nowMs, descriptor } = call;
    refuseTooLarge(request.body, BODY_BYTES_MAX);
    const { asked, warnings } = askedOf(call);
    const nodeName = asked.metadata.name ?? '';
    const key = dependencies.readPublicKey(recordOf(asked.spec?.['publicKey']));
    if (key.kind === 'invalid') {
      throw status.invalid(nodeidentities, nodeName, [
        invalidValue('spec.publicKey', asked.spec?.['publicKey'], key.why),
      ]);
    }
    const answer = await enrolNode(dependencies, {
      nodeName,
      key,
      by: enrolledBy(user, nodeName, asked),
      nowMs,
      dryRun: dryRunOf(request.query),
    });
    const identity = identityIn(answer, nodeName);
    const object = shapeObject(descriptor, identityObject(identity), call.shape, nowMs);
    return json(answer.kind === 'created' ? 201 : 200, object, warningHeaders(warnings));
  };

function askedOf({ request, nowMs }: Call): { readonly asked: KubeObject; readonly warnings: readonly string[] } {
  const read = readObjectBody(request.headers, request.body);
  const validation = fieldValidationOf(request.query);
  const { object, warnings } = decodeObject(nodeidentities, nodeIdentitySchema, read, validation);
  const { kind = '', apiVersion = '' } = object;
  if (
    (kind !== '' && kind !== nodeidentities.kind) ||
    (apiVersion !== '' && apiVersion !== apiVersionOf(nodeidentities))
  ) {
    throw status.badRequest(`${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a NodeIdentity`);
  }
  const asked = nodeidentities.prepareForCreate(object, { nowMs });
  const withTime = { ...asked, metadata: { ...asked.metadata, creationTimestamp: formatTime(nowMs) } };
  const causes = nodeidentities.validate(withTime, { operation: 'create', subresource: '' });
  if (causes.length > 0) throw status.invalid(nodeidentities, asked.metadata.name ?? '', causes);
  return { asked, warnings };
}

/** Who asks, of those whom authorize has let through: a node for itself, a bootstrap token, or a person. */
function enrolledBy(user: UserInfo, nodeName: string, asked: KubeObject): EnrolledBy {
  const node = nodeIdentity({ name: user.username, groups: user.groups });
  if (node.kind !== 'notANode') {
    const keyId = user.extra?.[KEY_ID_EXTRA]?.[0];
    if (node.kind !== 'node' || node.nodeName !== nodeName || keyId === undefined) {
      throw status.forbidden(nodeidentities, nodeName, 'a node may add keys of its own, with a token signed by one');
    }
    return { kind: 'node', keyId };
  }
  if (user.groups.includes(BOOTSTRAP_GROUP)) {
    if (user.username.startsWith(INSTANCE_USER_PREFIX)) {
      return { kind: 'instance', instanceId: user.username.slice(INSTANCE_USER_PREFIX.length) };
    }
    return { kind: 'bootstrapToken', id: user.username.slice(BOOTSTRAP_USER_PREFIX.length) };
  }
  const labels = asked.spec?.['nodeLabels'] as Record<string, string> | undefined;
  return { kind: 'user', name: user.username, ...(labels === undefined ? {} : { labels }) };
}

function identityIn(answer: EnrolAnswer, nodeName: string) {
  switch (answer.kind) {
    case 'created':
    case 'present':
      return answer.identity;
    case 'forbidden':
      throw status.forbidden(nodeidentities, nodeName, answer.reason);
    case 'taken':
      throw status.alreadyExists(nodeidentities, nodeName);
    case 'unavailable':
      throw status.serviceUnavailable(answer.reason, { retryAfterSeconds: 5 });
    case 'contended':
      throw status.serverTimeout(nodeidentities, 'create', 1);
  }
}
