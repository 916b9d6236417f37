import { describe, expect, it } from 'vitest';
import { readReview } from './review.rule.ts';

const OF = { webhook: 'w.example.com', uid: 'u', mayPatch: true };
const review = (response: unknown, more: object = {}) => ({
  kind: 'AdmissionReview',
  apiVersion: 'admission.k8s.io/v1',
  response,
  ...more,
});
const messageOf = (body: unknown, mayPatch = true): string | undefined => {
  const answer = readReview(body, { ...OF, mayPatch });
  return answer.kind === 'invalid' ? answer.message.replace('received invalid webhook response: ', '') : undefined;
};

describe('an answer of a webhook', () => {
  it.each([
    [[], 'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got no JSON object'],
    [
      review({ uid: 'u' }, { apiVersion: 'admission.k8s.io/v1beta1' }),
      'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview',
    ],
    [review(undefined), 'webhook response was absent'],
    [review({ allowed: true }), 'expected response.uid="u", got ""'],
    [review({ uid: 'u', patchType: 'JSONPatch' }), 'webhook returned response.patchType but not response.patch'],
    [review({ uid: 'u', patch: 'W10=', patchType: 'Merge' }), 'unsupported patch type "Merge"'],
    [review({ uid: 'u', patch: [], patchType: 'JSONPatch' }), 'response.patch is no base64 of a JSON patch'],
    [review({ uid: 'u', allowed: 'yes' }), 'response.allowed is no boolean'],
    [review({ uid: 'u', warnings: 'none' }), 'response.warnings is no list of texts'],
  ])('%j is not valid', (body, message) => expect(messageOf(body)).toBe(message));

  it('of a validating webhook has no patch', () => {
    const patch = { uid: 'u', patch: 'W10=', patchType: 'JSONPatch' };
    expect(messageOf(review(patch), false)).toBe('validating webhook may not return response.patch');
    const type = { uid: 'u', patchType: 'JSONPatch' };
    expect(messageOf(review(type), false)).toBe('validating webhook may not return response.patchType');
  });

  it('that allows nothing is a refusal, with a code of a refusal', () => {
    const status = {
      code: 422,
      reason: 'Invalid',
      details: { causes: [{ field: 'spec', message: 'm', reason: 'r' }] },
    };
    const answer = readReview(review({ uid: 'u', status }), OF);
    expect(answer).toMatchObject({
      refusal: {
        status: {
          status: 'Failure',
          code: 422,
          reason: 'Invalid',
          message: 'admission webhook "w.example.com" denied the request: Invalid',
          details: { causes: [{ field: 'spec', message: 'm', reason: 'r' }] },
        },
      },
    });
    for (const code of [200, 99, 700, 4.5, 'x']) {
      expect(readReview(review({ uid: 'u', allowed: false, status: { code } }), OF)).toMatchObject({
        refusal: {
          status: { code: 400, message: 'admission webhook "w.example.com" denied the request without explanation' },
        },
      });
    }
  });
});
