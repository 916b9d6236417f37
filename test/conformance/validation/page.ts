/** docs/validation.md, from the tables. */
import { resources } from '../../../shared/kinds/registry.ts';
import type { Constraint } from './constraint.ts';
import { OTHERWISE_WRITTEN, VALIDATED } from './kinds.ts';
import { metadataConstraints } from './metadata.ts';
import { podSpec, templateOnly } from './pod-spec.ts';

/** The cause that a rule has if its line names none, as the head of the page says. */
function usualCause(rule: string): string {
  if (/^set\b|^at least one$/.test(rule)) return 'Required';
  if (rule.startsWith('unique')) return 'Duplicate';
  if (/^only (for|with)\b|^not for\b|have no values$|^not supported/.test(rule)) return 'Forbidden';
  if (/^[A-Z][\w, ]* or [A-Z]\w*$|^(a )?known\b|^that of RBAC/.test(rule)) return 'NotSupported';
  return 'Invalid';
}

/** When a rule is checked if its line does not say it. */
function usualTime({ field, rule }: Constraint): string {
  if (field.startsWith('status')) return 'status';
  return /^immutable|for updates$/.test(rule) ? 'update' : 'create';
}

/** The words of a rule: signs for bounds, and a noun without its article. */
const wordsOf = (rule: string): string =>
  (/ (is|has|may|owns) /.test(rule) ? rule : rule.replace(/^(an?|the) /, ''))
    .replace(/\bat least (\d)/, '≥ $1')
    .replace(/\bat most (\d)/, '≤ $1')
    .replace(/\bgreater than (\d)/, '> $1');

/** One rule in words, with what is not as usual about it. */
function ruleOf(each: Constraint): string {
  if (each.kind === 'leftOut') return `${wordsOf(each.rule)}: not checked, ${each.reason}`;
  const rule = wordsOf(each.rule);
  const reason = each.cause.reason.replace('FieldValue', '');
  const additions = [
    ...(each.on === usualTime(each) ? [] : [each.on]),
    ...(reason === usualCause(each.rule) ? [] : [reason]),
  ];
  return additions.length === 0 ? rule : `${rule} (${additions.join(', ')})`;
}

const SELECTOR = [
  'an operator that is known',
  'In and NotIn have values (Required)',
  'Exists and DoesNotExist have no values',
  'keys are qualified names',
  'values have the form of label values',
  'matchLabels have the form of labels',
];

/** The rules that every label selector has, by one name. */
function withoutSelectorRules(rules: readonly string[]): readonly string[] {
  if (!SELECTOR.every((rule) => rules.includes(rule))) return rules;
  return ['[a label selector](#label-selectors)', ...rules.filter((rule) => !SELECTOR.includes(rule))];
}

/** Field to its rules. */
type Rules = ReadonlyMap<string, string>;

const rulesByField = (constraints: readonly Constraint[]): Rules =>
  new Map(
    [...Map.groupBy(constraints, ({ field }) => field)].map(([field, each]) => [
      field,
      withoutSelectorRules(each.map(ruleOf)).join('; '),
    ]),
  );

/** A key that is too long is named by its first character. */
const code = (names: readonly string[]): string =>
  names.map((name) => `\`${name.replace(/(\w)\1{20,}/g, '$1…')}\``).join(', ');

/** A line has all rules of a field. Fields with the same rules share a line. */
function lines(rules: Rules): string {
  const fields = Map.groupBy(rules.keys(), (field) => rules.get(field) ?? '');
  return [...fields].map(([text, names]) => `- ${code(names)}: ${text}`).join('\n');
}

/** Below this path a CronJob has the fields of a Job. */
const JOB = 'spec.jobTemplate.';

/** The section of a kind: a reference to an earlier kind for fields with the same rules, then the other fields. */
function ownLines(rules: Rules, earlier: ReadonlyMap<string, Rules>): string {
  const shared = [...earlier]
    .map(([resource, theirs]) => ({
      resource,
      fields: [...rules.keys()].filter((field) => rules.get(field) === theirs.get(field.replace(JOB, ''))),
    }))
    .toSorted((one, other) => other.fields.length - one.fields.length)[0];
  if (shared === undefined || shared.fields.length < 3) return lines(rules);
  const rest = new Map([...rules].filter(([field]) => !shared.fields.includes(field)));
  return `- as for [${shared.resource}](#${shared.resource}): ${code(shared.fields)}\n${lines(rest)}`.trimEnd();
}

/** Where the constraints come from, and which of the shared tables hold as well. */
function sourcesOf({ source, template }: (typeof VALIDATED)[string]): string {
  if (template === undefined) return source;
  return `${source}; [pod spec](#pod-spec)${template === '' ? '' : ` below \`${template}\``}`;
}

/** The constraints of metadata and pod spec, then those of each kind. */
export function validationPage(): string {
  const readOnly = resources
    .filter(({ verbs }) => !verbs.includes('create'))
    .map(({ resource, group }) => (group === '' ? resource : `${resource}.${group}`));
  const earlier = new Map<string, Rules>();
  const kinds = Object.entries(VALIDATED).map(([resource, each]) => {
    const rules = rulesByField(each.constraints);
    const own = rules.size === 0 ? '' : `\n${ownLines(rules, earlier)}\n`;
    earlier.set(resource, rules);
    return `\n## ${resource}\n\n${sourcesOf(each)}\n${own}`;
  });
  return `# Validation

The API refuses an invalid object with status 422 and the causes of upstream: reason, field and message. The lists below
have the constraints; \`[0]\` is any item. A test sends a counterexample of each one that is checked.

In parentheses are the cause and the time of a check that are not the usual ones:

| rule | cause |
|---|---|
| set; at least one | Required |
| unique | Duplicate |
| a list of values; a known one | NotSupported |
| only for, only with, not for; no values; not supported | Forbidden |
| any other | Invalid |

| rule | checked |
|---|---|
| of a field of \`status\` | when the status is written |
| immutable | in updates |
| any other | when the object is created |

\`test/conformance/validation\` has the constraints as data, those of Kubernetes 1.30 to 1.34, and writes this page
(\`WRITE_DOCS=1\`). It fails for a kind that is served and not listed. Each kind is named with upstream's function, or
with the page of a kind of ours.

No client writes these kinds: ${readOnly.sort().join(', ')}. Enrolment writes ${OTHERWISE_WRITTEN.join(', ')}.

## Metadata

Every kind but bootstraptokens has these constraints. Names are DNS subdomains in this example.

${lines(rulesByField(metadataConstraints('subdomain')))}

## Label selectors

- ${SELECTOR.join('; ')}

## Pod spec

For pods and every template, there below the path of the template.

${lines(rulesByField([...podSpec, ...templateOnly]))}
${kinds.join('')}`;
}
