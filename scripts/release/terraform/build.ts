/** The Terraform module: `scripts/release/terraform/module`, with the template and the code of the functions. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { functionList } from '../../../functions/function-list.ts';
import { packFolder } from '../archive.ts';
import { ROOT } from '../manifest.ts';
import { codeHash, codeOf, moduleSettings, templatesOfModule } from './templates.ts';

const MODULE = join(ROOT, 'scripts/release/terraform/module');

/** Writes the module into a folder, which is emptied first. */
export function buildTerraformModule(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  cpSync(MODULE, folder, { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  const templates = join(folder, 'templates');
  mkdirSync(templates);
  for (const [name, template] of Object.entries(templatesOfModule())) {
    writeFileSync(join(templates, `${name}.json`), `${JSON.stringify(template)}\n`);
  }
  for (const { name } of functionList) {
    const directory = join(folder, 'functions', name);
    mkdirSync(directory, { recursive: true });
    for (const [file, bytes] of codeOf(name)) writeFileSync(join(directory, file), bytes);
  }
  writeFileSync(join(folder, 'settings.json'), `${JSON.stringify(moduleSettings(), undefined, 2)}\n`);
  const hashes = Object.fromEntries(functionList.map(({ name }) => [name, codeHash(name)]));
  writeFileSync(join(folder, 'functions.json'), `${JSON.stringify(hashes, undefined, 2)}\n`);
}

/** @returns the path of `nodekeeper-terraform-VERSION.tar.gz` */
export function packTerraformModule(work: string, out: string, version: string): string {
  const name = `nodekeeper-terraform-${version}`;
  buildTerraformModule(join(work, name));
  const archive = join(out, `${name}.tar.gz`);
  packFolder(work, name, archive);
  return archive;
}
