/** The verdicts as text: one line per grant or missing grant. */
import { columns } from '../../shared/text-columns.ts';
import type { Row, Verdicts } from './verdicts.ts';

const MARKS: Readonly<Record<Row['verdict'], string>> = {
  used: 'ok',
  missing: 'NEEDED, NOT ALLOWED',
  surplus: 'GRANTED, NEVER USED',
  excepted: 'not used',
};

export function tableOf(verdicts: Verdicts): string {
  const cells = verdicts.rows.map((row) => [
    row.functionName,
    row.action,
    shortResource(row.resource) + (row.partition === undefined ? '' : ` [${row.partition}]`),
    row.verdict === 'missing' || row.used > 0 ? 'yes' : '',
    row.verdict === 'missing' ? '' : 'yes',
    row.used === 0 ? '' : String(row.used),
    MARKS[row.verdict] + (row.reason === undefined ? '' : `: ${row.reason}`),
  ]);
  const headings = ['FUNCTION', 'ACTION', 'RESOURCE', 'NEEDED', 'GRANTED', 'CALLS', 'VERDICT'];
  const lines = columns([headings, ...cells], '  ');
  const stale = verdicts.stale.map(
    ({ functions, actions, resource }) =>
      `an exception without a grant: ${functions.join(', ')}: ${actions.join(', ')} on ${resource}`,
  );
  return [...lines, ...stale, '', summary(verdicts)].join('\n');
}

function summary({ rows, stale }: Verdicts): string {
  const count = (verdict: Row['verdict']) => rows.filter((row) => row.verdict === verdict).length;
  return (
    `${rows.length} rows: ${count('used')} granted and used, ${count('excepted')} excepted with a reason, ` +
    `${count('missing')} missing, ${count('surplus')} surplus, ${stale.length} stale exceptions`
  );
}

/** `table/…Health`, without account, stack and hash. */
const shortResource = (arn: string): string =>
  arn
    .replace(/^arn:aws:[^:]*:[^:]*:[^:]*:/, '')
    .replace(/Nodekeeper-Cluster/g, '')
    .replace(/([A-Za-z])[0-9A-F]{8}(?=$|[/:])/g, '$1');
