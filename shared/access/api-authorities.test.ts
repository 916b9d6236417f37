import { getCACertificates, rootCertificates } from 'node:tls';
import { expect, it } from 'vitest';
import { apiAuthorities, bundleOf } from './api-authorities.ts';

const certificatesIn = (bundle: string) => bundle.split('-----END CERTIFICATE-----').length - 1;

it('has the five roots of Amazon Trust Services, in an order of its own', () => {
  const bundle = bundleOf(rootCertificates);
  expect(certificatesIn(bundle)).toBe(5);
  expect(bundleOf(rootCertificates.toReversed())).toBe(bundle);
});

it('has the authorities that replace the default ones, but no general list', () => {
  const others = rootCertificates.filter((pem) => !bundleOf(rootCertificates).includes(pem.trim()));
  expect(bundleOf(others.slice(0, 1))).toBe(`${others[0]?.trim()}\n`);
  expect(bundleOf(others)).toBe('');
  expect([10, 11].map((count) => certificatesIn(bundleOf(others.slice(0, count))))).toEqual([10, 0]);
});

it('has what this process trusts', () => {
  expect(apiAuthorities()).toBe(bundleOf(getCACertificates('default')));
});
