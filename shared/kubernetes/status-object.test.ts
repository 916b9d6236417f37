import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { invalidValue, shown } from './causes.ts';
import { jsonPrefix } from './json.ts';
import type { Cause } from './status.ts';
import { applyConflict, badRequest, forbidden, invalid, StatusError } from './status.ts';
import { CAUSES_MAX, STATUS_BYTES_MAX } from './status-object.ts';

const bytesOf = (error: StatusError): number => Buffer.byteLength(JSON.stringify(error.status));
const pod = { group: '', kind: 'Pod' };

describe('a Status', () => {
  it('lists 100 causes, and counts the others in message and details', () => {
    const causes = Array.from({ length: 2_000 }, (_, index) => invalidValue(`spec.a[${index}]`, index, 'no'));
    const { status } = invalid(pod, 'p', causes);
    expect(status.details?.causes).toHaveLength(CAUSES_MAX + 1);
    expect(status.details?.causes?.at(-1)).toEqual({
      reason: 'FieldValueInvalid',
      message: 'and 1900 more causes',
      field: 'spec.a[100]',
    });
    expect(status.message).toMatch(
      /^Pod "p" is invalid: \[spec\.a\[0\]: Invalid value: 0: no, .*, and 1900 more causes\]$/,
    );
  });

  it('keeps 100 causes of ordinary length whole', () => {
    const causes = Array.from({ length: CAUSES_MAX }, (_, index) =>
      invalidValue(`spec.a[${index}]`, 'x', 'y'.repeat(200)),
    );
    const { status } = invalid(pod, 'p', causes);
    expect(status.details?.causes).toEqual(causes);
    for (const { field } of causes) expect(status.message).toContain(field);
  });

  it('shows the beginning of a value that is too long', () => {
    const [cause] = [invalidValue('spec', { list: Array.from({ length: 50_000 }, () => 'item') }, 'detail')];
    expect(cause.message).toMatch(/^Invalid value: \{"list":\["item",("item",)+.*…: detail$/);
    expect(cause.message.length).toBeLessThan(1_100);
  });

  it('has at most 64 KB, whatever its texts are', () => {
    // The units with the most bytes as JSON: control characters, lone surrogates, three bytes of UTF-8.
    for (const unit of ['a', '"', '\u0000', '\ud800', '😀', '€', '[1,']) {
      const long = unit.repeat(200_000);
      const cause: Cause = { reason: long, message: long, field: long };
      const causes = Array.from({ length: 300 }, () => cause);
      const errors = [
        badRequest(long),
        forbidden({ group: long, resource: long }, long, long, causes),
        invalid({ group: long, kind: long }, long, causes),
        applyConflict(long, causes),
        new StatusError({
          kind: 'Status',
          apiVersion: 'v1',
          metadata: {},
          status: 'Failure',
          message: long,
          details: {
            name: long,
            uid: long,
            causes: Array.from({ length: 5_000 }, () => ({ reason: '', message: '' })),
          },
          code: 400,
        }),
      ];
      for (const error of errors) {
        expect(bytesOf(error)).toBeLessThanOrEqual(STATUS_BYTES_MAX);
        expect(error.message.length).toBeLessThanOrEqual(STATUS_BYTES_MAX);
        expect(error.status.message?.endsWith('…')).toBe(error.status.message !== '');
        expect(error.message.isWellFormed()).toBe(true);
      }
    }
  });
});

describe('a value in a message', () => {
  it('is its JSON where that is short', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(jsonPrefix(value, Number.MAX_SAFE_INTEGER)).toBe(JSON.stringify(value));
      }),
    );
    expect(shown({ a: undefined, b: [undefined, null] })).toBe('{"b":[null,null]}');
  });

  it('is the beginning of its JSON where that is long', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat({ max: 20 }), (value, max) => {
        const whole = JSON.stringify(value);
        const text = jsonPrefix(value, max);
        if (whole.length <= max) expect(text).toBe(whole);
        else expect(text).toBe(`${whole.slice(0, max).toWellFormed()}…`);
      }),
    );
  });
});
