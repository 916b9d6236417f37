/**
 * Admission of CertificateSigningRequests. Kubernetes: "Admission Controllers", CertificateApproval,
 * CertificateSigning, CertificateSubjectRestriction; upstream plugin/pkg/admission/certificates.
 *
 * - A request is signed by the key that it contains. Its author has that key.
 * - Who approves or denies a request, or issues its certificate, needs the verb `approve` or `sign` on its signer.
 * - No certificate has a group that may do everything: those who sign in with it could not be refused until it ends.
 * - Machines and bootstrap tokens have limits of their own (signing-requester.ts). People need a role.
 */
import { ADMIN_GROUPS } from '../../../shared/access/authorize.ts';
import type { Call } from '../../../shared/api/call.ts';
import { readCertificateRequest } from '../../../shared/kinds/certificates/certificate-request.ts';
import { API_CLIENT_SIGNER } from '../../../shared/kinds/certificates/signing-request.ts';
import type { KubeCertificateSigningRequest } from '../../../shared/kinds/types.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import { jsonEqual } from '../../../shared/kubernetes/json.ts';
import { dryRunOf } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { isSignedByItsKey } from '../access/request-signature.ts';
import type { ServeDependencies } from '../dependencies.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

type Dependencies = Pick<ServeDependencies, 'authorizer' | 'refuseSigningRequest'>;

export function signingRequestAdmission(dependencies: Dependencies, call: Call): NonNullable<WriteOptions['admit']> {
  const { target } = call;
  return async (next, stored) => {
    if (next === undefined) return;
    if (stored === undefined) return admitNew(dependencies, call, next);
    // What is stored names the signer: the spec of the body is not kept.
    if (target.subresource === 'approval') return requireVerb(dependencies, call, 'approve', stored);
    if (target.subresource === 'status' && !jsonEqual(next.status ?? {}, stored.status ?? {})) {
      return requireVerb(dependencies, call, 'sign', stored);
    }
  };
}

async function admitNew(
  { refuseSigningRequest }: Dependencies,
  { descriptor, user, request, nowMs }: Call,
  next: KubeCertificateSigningRequest,
): Promise<void> {
  const name = next.metadata.name ?? '';
  const { request: pem = '', signerName = '' } = next.spec ?? {};
  const read = readCertificateRequest(pem);
  // Validation has refused what cannot be read.
  if (read.kind !== 'request') return;
  if (!isSignedByItsKey(read.request)) {
    throw status.invalid(descriptor, name, [
      invalidValue('spec.request', pem, 'the request is not signed by the key that it contains'),
    ]);
  }
  const group = read.request.organizations.find((each) => ADMIN_GROUPS.has(each));
  if (signerName === API_CLIENT_SIGNER && group !== undefined) {
    throw status.forbidden(descriptor, name, `use of ${signerName} signer with ${group} group is not allowed`);
  }
  const dryRun = dryRunOf(request.query, 'CreateOptions');
  const why = await refuseSigningRequest({ user, signerName, request: read.request, nowMs, dryRun });
  if (why !== undefined) throw status.forbidden(descriptor, name, why);
}

/** The verb on the signer, or on all signers of its domain. */
async function requireVerb(
  { authorizer }: Dependencies,
  { descriptor, user, nowMs }: Call,
  verb: 'approve' | 'sign',
  { metadata, spec }: KubeCertificateSigningRequest,
): Promise<void> {
  const signerName = spec?.signerName ?? '';
  for (const name of [signerName, `${signerName.split('/', 1)[0]}/*`]) {
    const question = { verb, group: descriptor.group, resource: 'signers', subresource: '', namespace: '', name };
    if ((await authorizer.authorize(user, question, nowMs)).allowed) return;
  }
  const why = `user not permitted to ${verb} requests with signerName ${status.quote(signerName)}`;
  throw status.forbidden(descriptor, metadata.name ?? '', why);
}
