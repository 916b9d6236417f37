/**
 * policy.example.yaml and the table of docs/policy.md: every field with its meaning (the comment in
 * shared/fleet/policy.ts), what is allowed (the rule of its schema) and its default. `WRITE_DOCS=1` writes both.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { expectDocumented, markdownTable } from '../../test/support/documented.ts';
import { defaultPolicy } from '../fleet/policy.ts';
import { parsePolicy, policyFields } from './policy.ts';
import { policyFromYaml } from './policy-file.ts';

const EXAMPLE = join(repositoryRoot, 'policy.example.yaml');
const HEAD = `# Every field of the policy, with its default. A test writes this file from the schema.
#   npm run simulate -- --policy my-policy.yaml scenarios/*.yaml
#   npx nodekeeper serve --policy my-policy.yaml
#   npx cdk deploy, with policyFile under "context" in cdk.json
# A field that is left out has its default.
`;

const source = readFileSync(join(repositoryRoot, 'shared/fleet/policy.ts'), 'utf8');
const meanings = new Map(
  [...source.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n {2}readonly (\w+)\??:/g)].map(
    ([, comment = '', field = '']) => [field, comment.replaceAll(/^ *\*/gm, '').replaceAll(/\s+/g, ' ').trim()],
  ),
);
const refused = parsePolicy(Object.fromEntries(policyFields.map((field) => [field, null])));
const rules = new Map(refused.kind === 'faults' ? refused.faults.map(({ field, rule }) => [field, rule]) : []);

const fields = policyFields.map((field) => ({
  field,
  meaning: meanings.get(field) ?? '',
  allowed: (rules.get(field) ?? '').replace(/^must (be )?/, ''),
  value: JSON.stringify(defaultPolicy[field]),
}));

/** The text as comments that fit the width. */
const commented = (text: string): string =>
  [...text.matchAll(/(\S.{0,117})(?: |$)/g)].map(([, line]) => `# ${line}\n`).join('');

it('explains each field and what is allowed', () => {
  expect(fields.filter(({ meaning, allowed }) => meaning === '' || allowed === '').map(({ field }) => field)).toEqual(
    [],
  );
});

it('is policy.example.yaml, which is the default policy', () => {
  const text = `${HEAD}${fields
    .map(
      ({ field, meaning, allowed, value }) =>
        `\n${commented(meaning)}${commented(`Allowed: ${allowed}.`)}${field}: ${value}\n`,
    )
    .join('')}`;
  if (process.env['WRITE_DOCS'] === '1') writeFileSync(EXAMPLE, text);
  expect(readFileSync(EXAMPLE, 'utf8')).toBe(text);
  expect(policyFromYaml(text, 'policy.example.yaml')).toEqual({ kind: 'ok', policy: defaultPolicy });
});

it('is the table of docs/policy.md', () => {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const rows = fields.map(({ field, meaning, value }) => [`\`${field}\``, `\`${value}\``, cell(meaning)]);
  expectDocumented('docs/policy.md', 'fields', markdownTable([['field', 'default', 'meaning'], ...rows]));
});
