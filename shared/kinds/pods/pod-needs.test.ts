import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conflictsWith, type HostPort } from './pod-needs.ts';

const ports = fc.array(
  fc.record({
    ip: fc.constantFrom('0.0.0.0', '::', '10.0.0.1'),
    protocol: fc.constantFrom('TCP', 'UDP'),
    port: fc.integer({ min: 1, max: 3 }),
  }),
  { maxLength: 4 },
);

describe('host ports conflict', () => {
  it('if one of them has the port and protocol of another, and an address of it', () => {
    const isSame = (one: HostPort, other: HostPort): boolean =>
      one.port === other.port &&
      one.protocol === other.protocol &&
      (one.ip === other.ip || [one.ip, other.ip].includes('0.0.0.0'));
    fc.assert(
      fc.property(ports, ports, (wanted, used) => {
        expect(conflictsWith(wanted)(used)).toBe(wanted.some((one) => used.some((other) => isSame(one, other))));
      }),
    );
  });

  it('or not, which costs what their number costs, and not its square', () => {
    const many = (from: number): readonly HostPort[] =>
      Array.from({ length: 10_000 }, (_, index) => ({ ip: '0.0.0.0', protocol: 'TCP', port: from + index }));
    const conflicts = conflictsWith(many(1));
    for (let nodes = 0; nodes < 10; nodes += 1) expect(conflicts(many(20_000))).toBe(false);
  }, 5_000);
});
