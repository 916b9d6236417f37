/** POST of a NodeIdentity: reads the body, calls enrolNode with the credential of the user, returns the identity. */

import { nodeIdentity } from '../../../shared/access/authorize.ts';
import { BOOTSTRAP_GROUP, BOOTSTRAP_USER_PREFIX } from '../../../shared/access/bootstrap-token.ts';
import { KEY_ID_EXTRA } from '../../../shared/access/node-identity.ts';
import type { ReadPublicKey } from '../../../shared/access/node-keys.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { Call } from '../../../shared/api/call.ts';
import { shapeObject } from '../../../shared/api/response-body.ts';
import { defined } from '../../../shared/defined.ts';
import { nodeIdentity as nodeIdentitySchema } from '../../../shared/kinds/identities/schema.ts';
import { nodeidentities } from '../../../shared/kinds/identities/serve.ts';
import { identityObject } from '../../../shared/kinds/identities/storage.ts';
import type { KubeNodeIdentity } from '../../../shared/kinds/types.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import { type HttpResponse, json, warningHeaders } from '../../../shared/kubernetes/http.ts';
import { apiVersionOf, recordOf } from '../../../shared/kubernetes/normal-form.ts';
import { dryRunOf } from '../../../shared/kubernetes/request.ts';
import { decodeObject, fieldValidationOf, refuseTooLarge } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { readObject } from '../verbs/read-object.ts';
import { type EnrolAnswer, type EnrolDependencies, type EnrolledBy, enrolNode } from './enrol-node.ts';
import { INSTANCE_USER_PREFIX } from './instance-identity.ts';

/** Bytes. A key has about 200; labels may have more. */
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
    const { requested, warnings } = await requestedIdentity(call);
    const nodeName = requested.metadata.name ?? '';
    const key = dependencies.readPublicKey(recordOf(requested.spec?.publicKey));
    if (key.kind === 'invalid') {
      throw status.invalid(nodeidentities, nodeName, [
        invalidValue('spec.publicKey', requested.spec?.publicKey, key.why),
      ]);
    }
    const answer = await enrolNode(dependencies, {
      nodeName,
      key,
      by: enrolledBy(user, nodeName, requested),
      nowMs,
      dryRun: dryRunOf(request.query, 'CreateOptions'),
    });
    const identity = identityIn(answer, nodeName);
    const object = shapeObject(descriptor, identityObject(identity), call.shape, nowMs);
    return json(answer.kind === 'created' ? 201 : 200, object, warningHeaders(warnings));
  };

async function requestedIdentity({ request, nowMs }: Call): Promise<{
  readonly requested: KubeNodeIdentity;
  readonly warnings: readonly string[];
}> {
  const read = await readObject(request.headers, request.body);
  const validation = fieldValidationOf(request.query, 'CreateOptions');
  const { object, warnings } = decodeObject(nodeidentities, nodeIdentitySchema, read, validation);
  const { kind = '', apiVersion = '' } = object;
  if (
    (kind !== '' && kind !== nodeidentities.kind) ||
    (apiVersion !== '' && apiVersion !== apiVersionOf(nodeidentities))
  ) {
    throw status.badRequest(`${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a NodeIdentity`);
  }
  const requested = nodeidentities.prepareForCreate(object, { nowMs });
  const withTime = { ...requested, metadata: { ...requested.metadata, creationTimestamp: formatTime(nowMs) } };
  const causes = nodeidentities.validate(withTime, { operation: 'create', subresource: '' });
  if (causes.length > 0) throw status.invalid(nodeidentities, requested.metadata.name ?? '', causes);
  return { requested, warnings };
}

/** The credential of an authorized request: a node for itself, a bootstrap token, an instance, or a person. */
function enrolledBy(user: UserInfo, nodeName: string, requested: KubeNodeIdentity): EnrolledBy {
  const node = nodeIdentity({ name: user.username, groups: user.groups });
  if (node.kind !== 'notANode') {
    const keyId = user.extra?.[KEY_ID_EXTRA]?.[0];
    if (node.kind !== 'node' || node.nodeName !== nodeName || keyId === undefined) {
      throw status.forbidden(
        nodeidentities,
        nodeName,
        'a node may add keys only to its own identity, with a token signed by one of them',
      );
    }
    return { kind: 'node', keyId };
  }
  if (user.groups.includes(BOOTSTRAP_GROUP)) {
    if (user.username.startsWith(INSTANCE_USER_PREFIX)) {
      return { kind: 'instance', instanceId: user.username.slice(INSTANCE_USER_PREFIX.length) };
    }
    return { kind: 'bootstrapToken', id: user.username.slice(BOOTSTRAP_USER_PREFIX.length) };
  }
  return { kind: 'user', name: user.username, ...defined({ labels: requested.spec?.nodeLabels }) };
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
