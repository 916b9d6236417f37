import { expect, it } from 'vitest';
import { isCertificateFault } from './finding.ts';

it('a connection may fail because of a certificate', () => {
  const codes = ['CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ECONNREFUSED', ''];
  expect(codes.map(isCertificateFault)).toEqual([true, true, false, false]);
});
