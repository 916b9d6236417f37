import { describe, expect, it } from 'vitest';
import { swapIsOn, swapStartFault } from './swap-detection.ts';

describe('swap', () => {
  const header = 'Filename\t\tType\t\tSize\n';
  const devices = `${header}/dev/sda2  partition 1\n /swap file 2\n`;

  it('is on when the system lists a device', () => {
    expect([devices, header, '', undefined].map(swapIsOn)).toEqual([true, false, false, false]);
  });

  it('prevents the start where it must be off, and is named', () => {
    expect(swapStartFault(true, devices)).toMatch(/lists \/dev\/sda2, \/swap$/);
    expect([swapStartFault(false, devices), swapStartFault(true, header), swapStartFault(true, undefined)]).toEqual([
      ...[undefined, undefined, undefined],
    ]);
  });
});
