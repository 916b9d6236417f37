import { describe, expect, it } from 'vitest';
import { answered, timedOut } from '../../test/support/agent-api.ts';
import { signatureFault, signedDowngrade, signedStatement, updateAnswer } from './update-check.ts';

const release = {
  name: 'stable',
  version: '1.2.3',
  url: 'https://example.com/agent',
  sha256: 'a1'.repeat(32),
  signature: 's',
  downgradeSignature: 'd',
  sizeBytes: 5,
};
const answerOf = (body: object) => updateAnswer(answered(200, { kind: 'NodeUpdateAnswer', ...body }));

describe('the answer to an update check', () => {
  it.each([
    [timedOut, 'no answer'],
    [answered(503, { kind: 'NodeUpdateAnswer' }), '503'],
    [answered(200, 'a page'), 'the answer is not from the API'],
    [answered(200, { action: 'none' }), 'the answer is not from the API'],
  ])('has failed: %j', (answer, why) => {
    expect(updateAnswer(answer)).toEqual({ kind: 'failed', why });
  });

  it('is none without an action that is known', () => {
    expect([answerOf({}), answerOf({ action: 'none' }), answerOf({ action: 'other', release })]).toEqual(
      new Array(3).fill({ kind: 'none' }),
    );
  });

  it.each([
    [60, 60_000],
    [10, 10_000],
    [9, 10_000],
    [-1, 10_000],
    [3_600, 3_600_000],
    [3_601, 3_600_000],
    ['60', 10_000],
    [undefined, 10_000],
  ])('asks for a wait of %s s: %i ms', (waitSeconds, waitMs) => {
    expect(answerOf({ action: 'wait', waitSeconds })).toEqual({ kind: 'wait', waitMs });
  });

  it('offers a release', () => {
    expect(answerOf({ action: 'update', release: { ...release, more: 1 } })).toEqual({ kind: 'update', release });
    const { name: _name, downgradeSignature: _downgrade, sizeBytes: _size, ...least } = release;
    expect(answerOf({ action: 'update', release: least })).toEqual({
      kind: 'update',
      release: { ...least, name: '', downgradeSignature: undefined, sizeBytes: undefined },
    });
    const wrong = { ...release, name: 1, downgradeSignature: 2, sizeBytes: '3' };
    expect(answerOf({ action: 'update', release: wrong })).toMatchObject({
      release: { name: '', downgradeSignature: undefined, sizeBytes: undefined },
    });
  });

  it.each([
    { version: '' },
    { version: '../1' },
    { version: '-1' },
    { version: '1/2' },
    { version: `1${'0'.repeat(63)}` },
    { version: 1 },
    { sha256: 'a1'.repeat(31) },
    { sha256: `${'a1'.repeat(32)}0` },
    { sha256: `x${'a1'.repeat(32)}` },
    { sha256: 'A1'.repeat(32) },
    { sha256: undefined },
    { url: 5 },
    { signature: undefined },
  ])('refuses a release with %j', (more) => {
    const refusal = { kind: 'failed', why: 'the release is malformed' };
    expect(answerOf({ action: 'update', release: { ...release, ...more } })).toEqual(refusal);
    expect(answerOf({ action: 'update' })).toEqual(refusal);
  });

  it.each(['1', '1.2.3-rc.1+build', 'A', `1${'0'.repeat(62)}`])('accepts the version %s', (version) => {
    expect(answerOf({ action: 'update', release: { ...release, version } })).toMatchObject({ kind: 'update' });
  });
});

describe('the signature of a release', () => {
  const signedBy = (...statements: string[]) => {
    const asked: string[] = [];
    return {
      asked,
      isSigned: (statement: string, signature: string) => {
        asked.push(signature);
        return statements.includes(statement);
      },
    };
  };
  const statement = signedStatement(release);

  it('is over the version and the digest, and differs for a downgrade', () => {
    expect(statement).toBe(`nodekeeper-agent 1.2.3 ${release.sha256}\n`);
    expect(signedDowngrade(release)).toBe(`nodekeeper-agent 1.2.3 ${release.sha256} downgrade\n`);
  });

  it('must be by our key', () => {
    expect(signatureFault(release, '1.0.0', signedBy().isSigned)).toContain('is not by the key of this machine');
    expect(signatureFault(release, '1.0.0', signedBy(signedDowngrade(release)).isSigned)).toContain(
      'is not by the key',
    );
    const { asked, isSigned } = signedBy(statement);
    expect(signatureFault(release, '1.0.0', isSigned)).toBeUndefined();
    expect(signatureFault(release, '1.2.3', isSigned)).toBeUndefined();
    expect(asked).toEqual(['s', 's']);
  });

  it('of an older version must be one of a downgrade, too', () => {
    const { asked, isSigned } = signedBy(statement);
    expect(signatureFault(release, '1.3.0', isSigned)).toBe(
      '1.2.3 is older than 1.3.0, and is not signed as a downgrade',
    );
    expect(asked).toEqual(['s', 'd']);
    const unsigned = signedBy(statement);
    expect(signatureFault({ ...release, downgradeSignature: undefined }, '1.3.0', unsigned.isSigned)).toBeDefined();
    expect(unsigned.asked).toEqual(['s', '']);
    expect(signatureFault(release, '1.3.0', signedBy(statement, signedDowngrade(release)).isSigned)).toBeUndefined();
  });
});
