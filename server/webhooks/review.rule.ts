/**
 * AdmissionReview v1: what is sent to a webhook, and what its answer means.
 * Sources: k8s.io/apiserver pkg/admission/plugin/webhook/{request,errors}, k8s.io/api/admission/v1.
 */

import { isJsonObject, type JsonObject } from '../../shared/kubernetes/json.ts';
import { quote, StatusError } from '../../shared/kubernetes/status.ts';

const REVIEW = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' };
const REVIEW_KIND = 'admission.k8s.io/v1, Kind=AdmissionReview';

/** @param request an AdmissionRequest */
export const reviewOf = (request: object): string => JSON.stringify({ ...REVIEW, request });

export type WebhookAnswer =
  | {
      readonly kind: 'answered';
      /** Absent: the request is allowed. */
      readonly refusal?: StatusError;
      /** Base64 of a JSON patch. Absent: nothing changes. */
      readonly patch?: string;
      readonly warnings: readonly string[];
      readonly auditAnnotations: Readonly<Record<string, string>>;
    }
  /** The webhook cannot be believed: its failurePolicy decides. */
  | { readonly kind: 'invalid'; readonly message: string };

const invalid = (why: string): WebhookAnswer => ({
  kind: 'invalid',
  message: `received invalid webhook response: ${why}`,
});

/** @param body the parsed body of the answer */
export function readReview(
  body: unknown,
  { webhook, uid, mayPatch }: { readonly webhook: string; readonly uid: string; readonly mayPatch: boolean },
): WebhookAnswer {
  if (!isJsonObject(body)) return invalid(`expected webhook response of ${REVIEW_KIND}, got no JSON object`);
  const { kind, apiVersion, response } = body;
  if (kind !== REVIEW.kind || apiVersion !== REVIEW.apiVersion) {
    return invalid(`expected webhook response of ${REVIEW_KIND}, got ${textOf(apiVersion)}, Kind=${textOf(kind)}`);
  }
  if (!isJsonObject(response)) return invalid('webhook response was absent');
  if (response['uid'] !== uid) {
    return invalid(`expected response.uid=${quote(uid)}, got ${quote(textOf(response['uid']))}`);
  }
  const { patch = '', patchType } = response;
  const fault = patchFault(patch, patchType, mayPatch) ?? shapeFault(response);
  if (fault !== undefined) return invalid(fault);
  return {
    kind: 'answered',
    warnings: textsIn(response['warnings']),
    auditAnnotations: Object.fromEntries(
      Object.entries(isJsonObject(response['auditAnnotations']) ? response['auditAnnotations'] : {}).map(
        ([key, value]) => [key, textOf(value)],
      ),
    ),
    ...(response['allowed'] !== true && { refusal: refusalOf(webhook, response['status']) }),
    ...(typeof patch === 'string' && patch !== '' && { patch }),
  };
}

function patchFault(patch: unknown, patchType: unknown, mayPatch: boolean): string | undefined {
  const hasPatch = patch !== '' && patch !== null;
  const hasType = patchType !== undefined && patchType !== null;
  if (!mayPatch) {
    if (hasPatch) return 'validating webhook may not return response.patch';
    return hasType ? 'validating webhook may not return response.patchType' : undefined;
  }
  if (hasPatch && !hasType) return 'webhook returned response.patch but not response.patchType';
  if (!hasPatch && hasType) return 'webhook returned response.patchType but not response.patch';
  if (hasPatch && typeof patch !== 'string') return 'response.patch is no base64 of a JSON patch';
  return hasType && patchType !== 'JSONPatch' ? `unsupported patch type ${quote(textOf(patchType))}` : undefined;
}

function shapeFault({ allowed, warnings }: JsonObject): string | undefined {
  if (allowed !== undefined && typeof allowed !== 'boolean') return 'response.allowed is no boolean';
  const isList = warnings === undefined || warnings === null || Array.isArray(warnings);
  return isList ? undefined : 'response.warnings is no list of texts';
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string' && each !== '') : [];

/** The Status of a webhook, which is never one of success. */
function refusalOf(webhook: string, sent: unknown): StatusError {
  const { code, message, reason, details } = isJsonObject(sent) ? sent : {};
  const deniedBy = `admission webhook ${quote(webhook)} denied the request`;
  const why = textOf(message) || textOf(reason);
  const isRefusal = typeof code === 'number' && Number.isInteger(code) && code >= 400 && code < 600;
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: why === '' ? `${deniedBy} without explanation` : `${deniedBy}: ${why}`,
    ...(textOf(reason) !== '' && { reason: textOf(reason) }),
    ...(isJsonObject(details) && { details: detailsIn(details) }),
    code: isRefusal ? code : 400,
  });
}

function detailsIn({ name, group, kind, causes, retryAfterSeconds }: JsonObject) {
  return {
    ...(textOf(name) !== '' && { name: textOf(name) }),
    ...(textOf(group) !== '' && { group: textOf(group) }),
    ...(textOf(kind) !== '' && { kind: textOf(kind) }),
    ...(typeof retryAfterSeconds === 'number' && { retryAfterSeconds }),
    ...(Array.isArray(causes) && {
      causes: causes.filter(isJsonObject).map((cause) => ({
        reason: textOf(cause['reason']),
        message: textOf(cause['message']),
        ...(textOf(cause['field']) !== '' && { field: textOf(cause['field']) }),
      })),
    }),
  };
}
