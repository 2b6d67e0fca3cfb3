// Writes a module of TypeScript for each board, in which the board, and of each panel the
// options, the field configuration and the queries, are values of the types that Grafana
// generates from its schemas: the compiler refuses what is unknown, missing or of another type.
//
//   node check.mjs FOLDER BOARD...
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const [folder, ...boards] = process.argv.slice(2);
const panels = './node_modules/@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
const queries = './node_modules/queries/dist/esm/raw/composable/prometheus/dataquery/x/PrometheusDataQuery_types.gen';

// A file has the names of an enumeration, and no enumeration.
const head = `import type { Dashboard } from '@grafana/schema';
import type { FieldConfig, Options } from '${panels}';
import type { PrometheusDataQuery } from '${queries}';
type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
`;

const text = (board) => {
  const values = [['Dashboard', board]];
  for (const p of board.panels) {
    if (p.type !== 'timeseries') throw new Error(`the panel "${p.title}" is a ${p.type}, whose options are not checked here`);
    values.push(['Options', p.options], ['FieldConfig', p.fieldConfig.defaults.custom ?? {}]);
    for (const q of p.targets) values.push(['PrometheusDataQuery', q]);
  }
  return head + values.map(([type, v], i) => `export const v${i}: Plain<${type}> = ${JSON.stringify(v)};\n`).join('');
};

for (const file of boards) {
  const name = basename(file, '.json');
  const board = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(join(folder, `${name}.right.ts`), text(board));
  console.log(`${name}: ${board.panels.length} panels, ${board.panels.flatMap((p) => p.targets).length} queries`);
  // The same with a mistake in each part, which the compiler has to find.
  const mistakes = {
    board: (b) => { b.titel = b.title; },
    panel: (b) => { b.panels[0].gridPos.width = 8; },
    options: (b) => { b.panels[0].options.legend.placement = 'below'; },
    query: (b) => { delete b.panels[0].targets[0].expr; },
  };
  for (const [part, make] of Object.entries(mistakes)) {
    const wrong = structuredClone(board);
    make(wrong);
    writeFileSync(join(folder, `${name}.wrong-${part}.ts`), text(wrong));
  }
}
