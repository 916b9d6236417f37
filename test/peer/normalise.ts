/** Removes from kubectl's output what differs between runs. Pure. */

export interface Surroundings {
  /** Base URL of the server. */
  readonly serverUrl: string;
  readonly workDir: string;
  readonly homeDir: string;
}

const UID = /\b(?!00000000-)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;
const FRACTION_TIME = /\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)/g;
const TIME = /\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)/g;
const RFC_1123_TIME =
  /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} 20[2-9]\d \d\d:\d\d:\d\d (?:[+-]\d{4}|[A-Z]{3,4})/g;
const DEPRECATION = /^Warning: .* is deprecated in v1\.\d+\+, unavailable in v1\.\d+\+/;

/**
 * kubectl's own race: its --timeout ended a watch that was just being read. It prints this in some runs and not in
 * others.
 */
const CUT_WATCH = /^E\d{4} .*Failed to watch.*context deadline exceeded/;

export function normalise(text: string, surroundings: Surroundings): string {
  const { host, origin } = new URL(surroundings.serverUrl);
  const hostname = host.replace(/:\d+$/, '');
  let out = text
    .replace(/(?:\/[^\s"']*)?kubectl(?:\.1\.\d+)?-edit-[^\s"']*/g, '<TMPFILE>')
    .replaceAll(surroundings.serverUrl.replace(/\/$/, ''), '<SERVER>')
    .replaceAll(origin, '<SERVER>')
    .replaceAll(host, '<HOST>')
    .replace(new RegExp(`(?<![\\d.])${hostname.replace(/\./g, '\\.')}(?![\\d.])`, 'g'), '<HOST>')
    .replaceAll(surroundings.workDir, '<DIR>')
    .replaceAll(surroundings.homeDir, '<HOME>');
  out = out
    .replace(UID, '<UID>')
    .replace(FRACTION_TIME, '<MICROTIME>')
    .replace(TIME, '<TIME>')
    .replace(RFC_1123_TIME, '<TIME>')
    .replace(/(\bresourceVersion"?: ?)"\d+"/g, '$1"<RV>"')
    .replace(/(\bResource Version:\s+)\d+/g, '$1<RV>')
    .replaceAll('policy/v1beta1', 'policy/v1')
    // The recorded server had one of the two versions.
    .replaceAll('policy/v1\npolicy/v1\n', 'policy/v1\n')
    .replace(/\bkubectl\.1\.\d+\b/g, 'kubectl')
    .replace(/\b0xc[0-9a-f]+\b/g, '<PTR>')
    // The server of the recordings wrote a time into managedFields even so, and kubectl then sees a change.
    .replace(/^(\S+ patched) \(no change\)$/gm, '$1');
  return replaceAges(
    out
      .split('\n')
      .filter((line) => !DEPRECATION.test(line) && !CUT_WATCH.test(line))
      .map(squeezeBlanks),
  ).join('\n');
}

/** Column gaps become three blanks; indentation stays, blanks at the end go. */
function squeezeBlanks(line: string): string {
  const indent = /^[ ]*/.exec(line)![0];
  const rest = line
    .slice(indent.length)
    .replace(/[ \t]+$/, '')
    .replace(/ {2,}|[ ]*\t[ \t]*/g, '   ');
  return rest === '' ? '' : indent + rest;
}

const AGE = /^(?:\d{1,3}[smhdy]){1,2}$/;
const REPEATED = /^(?:\d{1,3}[smhdy]){1,2} \(x(\d+) over (?:\d{1,3}[smhdy]){1,2}\)$/;
const HEADER = /^[A-Z][A-Z0-9 ()/%_-]*$/;

function replaceAges(lines: readonly string[]): string[] {
  /** Whether the table the line stands in has ages; lines outside of tables may. */
  let ages = true;
  return lines.map((line) => {
    if (line === '') {
      ages = true;
      return line;
    }
    const indent = /^[ ]*/.exec(line)![0];
    const cells = line.slice(indent.length).split('   ');
    if (cells.length > 1 && cells.every((cell) => HEADER.test(cell))) {
      ages = cells.some((cell) => /\b(?:AGE|SEEN)\b/.test(cell));
      return line;
    }
    if (cells.length < 2 || !ages) return line;
    const replaced = cells.map((cell, at) => {
      if (at > 0 && cells[at - 1]!.endsWith(':')) return cell;
      if (AGE.test(cell) || cell === '<invalid>') return '<AGE>';
      return cell.replace(REPEATED, '<AGE> (x$1 over <AGE>)');
    });
    return indent + replaced.join('   ');
  });
}
