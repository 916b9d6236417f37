/** CertificateSigningRequests. server/certificates signs them; on AWS nothing does. */

import type { UserInfo } from '../../access/user-info.ts';
import { defined } from '../../defined.ts';
import { formatAge } from '../../kubernetes/age.ts';
import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { formatTime } from '../../kubernetes/time.ts';
import { ageOf, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesWhole, STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeCertificateSigningRequest, KubeObject } from '../types.ts';
import { SIGNING_REQUESTS } from './resource.ts';
import { validateCertificateSigningRequest } from './validate.ts';

/**
 * The request with its author, whatever the client sent: a signer decides by that. Without an author it has no user.
 * Source: pkg/registry/certificates, PrepareForCreate.
 */
function withRequester(request: KubeCertificateSigningRequest, user: UserInfo | undefined): KubeObject {
  const { username: _name, uid: _uid, groups: _groups, extra: _extra, ...spec } = request.spec ?? {};
  if (user === undefined) return { ...request, spec };
  const extra = Object.fromEntries(Object.entries(user.extra ?? {}).map(([key, values]) => [key, [...values]]));
  const requester = { username: user.username, groups: [...user.groups], ...defined({ uid: user.uid }) };
  return { ...request, spec: withoutEmpty({ ...spec, ...requester, extra }, 'extra') };
}

const DECISIONS = ['Approved', 'Denied'];

/** A condition without times is one that this write adds. */
function storedConditions(status: KubeCertificateSigningRequest['status'], nowMs: number) {
  const now = formatTime(nowMs);
  return (status?.conditions ?? []).map((condition) => ({
    ...condition,
    lastUpdateTime: condition.lastUpdateTime ?? now,
    lastTransitionTime: condition.lastTransitionTime ?? now,
  }));
}

function conditionCell({ status = {} }: KubeCertificateSigningRequest): string {
  const types = (status.conditions ?? []).map(({ type = '' }) => type);
  const decision = DECISIONS.find((each) => types.includes(each)) ?? 'Pending';
  const issued = (status.certificate ?? '') === '' ? [] : ['Issued'];
  return [decision, ...types.filter((each) => each === 'Failed'), ...issued].join(',');
}

const whole = preparesWhole(SIGNING_REQUESTS);

export const certificatesigningrequests: ResourceDescriptor = servedKind(SIGNING_REQUESTS, {
  shortNames: ['csr'],
  subresources: [{ name: 'approval', verbs: ['get', 'patch', 'update'] }, STATUS_PART],
  columns: [
    nameColumn,
    ageColumn,
    textColumn('SignerName', 'Signer of the certificate.'),
    textColumn('Requestor', 'User who created the request.'),
    textColumn('RequestedDuration', 'Requested validity.'),
    textColumn('Condition', 'Decisions about the request.'),
  ],
  row: (object: KubeCertificateSigningRequest, nowMs) => [
    nameOf(object),
    ageOf(object, nowMs),
    object.spec?.signerName ?? NONE,
    object.spec?.username ?? '',
    object.spec?.expirationSeconds === undefined ? NONE : formatAge(object.spec.expirationSeconds * 1_000),
    conditionCell(object),
  ],
  prepare: {
    ...whole,
    prepareForCreate: (object, context) => ({
      ...whole.prepareForCreate(withRequester(object, context.user), context),
      status: {},
    }),
    prepareForUpdate(next: KubeCertificateSigningRequest, old: KubeCertificateSigningRequest, context) {
      const prepared = whole.prepareForUpdate(next, old, context);
      const kept = { spec: old.spec ?? {}, status: old.status ?? {} };
      if (context.subresource === '') return { ...prepared, ...kept };
      const conditions = storedConditions(next.status, context.nowMs);
      const { certificate } = (context.subresource === 'status' ? next : old).status ?? {};
      const status = withoutEmpty(withoutNulls({ ...defined({ certificate }), conditions }), 'conditions');
      return { ...prepared, ...kept, status };
    },
  },
  validate: validateCertificateSigningRequest,
});
