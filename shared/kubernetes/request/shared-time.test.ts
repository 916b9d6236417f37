import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sharedTime } from './shared-time.ts';

it('charges a request all of the time in which it is served alone, and half of what it shares with another', () => {
  let busyMs = 100;
  const time = sharedTime(() => busyMs);
  busyMs += 7;
  const first = time.begin();
  busyMs += 10;
  const second = time.begin();
  busyMs += 20;
  expect(first.end()).toBe(20);
  busyMs += 5;
  expect(second.end()).toBe(15);
  expect(second.end()).toBe(15);
});

it('charges all requests together what was computed while there were any', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ busyMs: fc.nat(100), ends: fc.boolean(), which: fc.nat() }), { maxLength: 60 }),
      (steps) => {
        let busyMs = 0;
        const time = sharedTime(() => busyMs);
        const open: { end(): number }[] = [];
        let expected = 0;
        let charged = 0;
        for (const step of steps) {
          busyMs += step.busyMs;
          if (open.length > 0) expected += step.busyMs;
          if (step.ends && open.length > 0) charged += open.splice(step.which % open.length, 1)[0]!.end();
          else open.push(time.begin());
        }
        for (const sharer of open) charged += sharer.end();
        expect(charged).toBeCloseTo(expected, 6);
      },
    ),
  );
});
