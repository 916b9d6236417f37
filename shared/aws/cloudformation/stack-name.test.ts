import { expect, it } from 'vitest';
import { isRegion } from './stack-name.ts';

it('knows regions of every partition', () => {
  const regions = ['eu-west-1', 'us-gov-west-1', 'cn-north-1', 'us-isob-east-1', 'eusc-de-east-1'];
  expect(regions.filter((region) => !isRegion(region))).toEqual([]);
  expect(['eu-west', 'eu-west-1a', 'EU-WEST-1', 'europe-west-1', ' eu-west-1', ''].filter(isRegion)).toEqual([]);
});
