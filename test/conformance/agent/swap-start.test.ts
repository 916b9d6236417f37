/** WS: swap detection and start-up. */
import { describe, expect, it } from 'vitest';
import { checkConfig, describeConfigFault } from '../../../agent/rules/config-settings.ts';
import { swapIsOn, swapStartFault } from '../../../agent/rules/swap-detection.ts';

const HEADER = 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n';
const TWO_DEVICES = `${HEADER}/dev/sda2 partition 2097148 0 -2\n/swapfile file 1048572 0 -3\n`;

function configured(fields: Record<string, unknown>) {
  const value = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...fields };
  return checkConfig({
    documents: [{ value, at: () => 'k.yaml:3' }],
    flags: { endpoint: 'https://example.test' },
    hostname: 'n',
  });
}

describe('WS swap detection and start-up', () => {
  it('WS-01 an empty /proc/swaps is off', () => {
    expect(swapIsOn('')).toBe(false);
    expect(swapIsOn(undefined)).toBe(false);
  });

  it('WS-03 a header alone is off', () => {
    expect(swapIsOn(HEADER)).toBe(false);
  });

  it('WS-05 two devices are on', () => {
    expect(swapIsOn(TWO_DEVICES)).toBe(true);
  });

  it('WS-07 refuses to start with swap on unless told otherwise', () => {
    const { config } = configured({});
    expect(swapStartFault(config.failSwapOn, TWO_DEVICES)).toMatch(
      /^running with swap on is not supported, please disable swap/,
    );
    expect(swapStartFault(configured({ failSwapOn: false }).config.failSwapOn, TWO_DEVICES)).toBeUndefined();
  });

  it('WS-09 starts with a header alone', () => {
    expect(swapStartFault(configured({ failSwapOn: true }).config.failSwapOn, HEADER)).toBeUndefined();
  });

  it('WS-11 refuses UnlimitedSwap', () => {
    const { faults } = configured({ memorySwap: { swapBehavior: 'UnlimitedSwap' } });
    expect(faults.map(describeConfigFault)).toEqual([
      'k.yaml:3: invalid configuration: memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"',
    ]);
  });

  it('WS-13 accepts an empty behaviour, which means NoSwap', () => {
    const { config, faults } = configured({ memorySwap: { swapBehavior: '' } });
    expect(faults).toEqual([]);
    expect(config.swapBehavior).toBe('');
  });
});
