import { describe, expect, it } from 'vitest';
import {
  hasEnded,
  PROBE_KEYS_MAX,
  PROCESS_KEY_LIFE_SECONDS,
  type ProcessKey,
  useOfKey,
  withProbeKey,
} from './process-key.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const key = (keyId: string, throughMs = NOW_MS + PROCESS_KEY_LIFE_SECONDS * 1_000): ProcessKey => ({
  keyId,
  publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'x'.repeat(43) },
  throughMs,
});
const idsOf = (keys: readonly ProcessKey[]): string[] => keys.map(({ keyId }) => keyId);

describe('a key of a process', () => {
  const { throughMs } = key('a');
  it.each([
    ['use', 86_400_000],
    ['use', 43_200_000],
    ['replace', 43_199_999],
    ['replace', 600_000],
    ['ended', 599_999],
    ['ended', -1],
  ])('is to %s with %i ms left', (use, leftMs) => {
    expect(useOfKey({ throughMs }, throughMs - leftMs)).toBe(use);
  });

  it('counts to its last millisecond', () => {
    expect([hasEnded({ throughMs }, throughMs), hasEnded({ throughMs }, throughMs + 1)]).toEqual([false, true]);
  });
});

describe('the keys of probes', () => {
  it('are one more, without those that have ended', () => {
    const stored = [key('old', NOW_MS - 1), key('living', NOW_MS)];
    expect(idsOf(withProbeKey(stored, key('made'), NOW_MS))).toEqual(['made', 'living']);
  });

  it('are bounded: those that end first make room', () => {
    const stored = Array.from({ length: PROBE_KEYS_MAX + 3 }, (_, index) => key(`k${index}`, NOW_MS + index));
    const kept = idsOf(withProbeKey(stored, key('made'), NOW_MS));
    expect(kept).toHaveLength(PROBE_KEYS_MAX);
    expect(kept.slice(0, 2)).toEqual(['made', `k${PROBE_KEYS_MAX + 2}`]);
    expect(kept).not.toContain('k0');
  });

  it('do not hold one twice', () => {
    expect(idsOf(withProbeKey([key('made'), key('other')], key('made'), NOW_MS))).toEqual(['made', 'other']);
  });
});
