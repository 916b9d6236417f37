import { expect, it } from 'vitest';
import { certificateAge, daysLeft } from './relay-certificate.ts';

it('a certificate of a relay is reported for thirty days before its end', () => {
  const dayMs = 86_400_000;
  const age = (leftMs: number) => certificateAge(100 * dayMs + leftMs, 100 * dayMs);
  expect([30 * dayMs + 1, 30 * dayMs, 1, 0, -1].map(age)).toEqual([
    ...['valid', 'expiresSoon', 'expiresSoon', 'expired', 'expired'],
  ]);
  expect([daysLeft(2 * dayMs, 1), daysLeft(2 * dayMs, 0), daysLeft(0, 1)]).toEqual([1, 2, -1]);
});
