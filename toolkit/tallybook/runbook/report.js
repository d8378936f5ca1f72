// Sorts tables, and lets charts be read, zoomed and thinned out. Everything is visible without it.
'use strict';

// Tables: a button in each head; a second press turns the order around.

const said = (cell) => cell.textContent.trim();
const number = (text) => Number(text.replaceAll(',', '').replace(/%$/, ''));
const absent = (text) => text === '' || text === 'null';

function order(cells) {
  const texts = cells.filter((text) => !absent(text));
  const numeric = texts.length > 0 && texts.every((text) => !Number.isNaN(number(text)));
  const compare = numeric ? (a, b) => number(a) - number(b)
    : (a, b) => a.localeCompare(b, undefined, {numeric: true});
  return (a, b) => absent(a) || absent(b) ? absent(a) - absent(b) : compare(a, b);
}

function sort(table, head, column) {
  const down = head.getAttribute('aria-sort') === 'ascending';
  const body = table.tBodies[0], rows = [...body.rows];
  const of = (row) => row.cells[column] ? said(row.cells[column]) : '';
  const compare = order(rows.map(of));
  const turned = (a, b) => absent(a) || absent(b) || !down ? compare(a, b) : compare(b, a);
  rows.sort((a, b) => turned(of(a), of(b)));
  body.append(...rows);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
}

for (const table of document.querySelectorAll('table')) {
  if (!table.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'sort';
    button.append(...head.childNodes);
    button.addEventListener('click', () => sort(table, head, column));
    head.append(button);
  });
}

// Charts: marks are read by pointer or arrow keys; a legend entry hides what has its colour.

const MARKS = '.role-mark > [aria-label]';
const NEAR = 40;

function scale(axis) {
  // The scale of an axis, from the words that describe it and the line that it draws.
  const told = (axis.getAttribute('aria-label') || '')
    .match(/^([XY])-axis(?: titled '(.*)')? for an? (linear|utc|time) scale with values from (\S+) to (\S+)$/);
  const line = axis.querySelector('.role-axis-domain line');
  if (!told || !line) return null;
  const parse = told[3] === 'linear' ? number : clock;
  const [low, high] = [parse(told[4]), parse(told[5])];
  if (Number.isNaN(low) || Number.isNaN(high)) return null;
  const box = line.getBoundingClientRect(), flat = told[1] === 'X';
  const [from, to] = flat ? [box.left, box.right] : [box.bottom, box.top];
  const show = told[3] === 'linear' ? shortly : clocked(told[4].includes('.') || high - low < 60);
  return {flat, at: (place) => show(low + (place - from) / (to - from || 1) * (high - low))};
}

function clock(text) {
  const parts = text.split(':').map(Number);
  return parts.length < 2 ? NaN : parts[0] * 3600 + parts[1] * 60 + (parts[2] || 0);
}

const shortly = (value) => Number(value.toPrecision(4)).toLocaleString('en');
const clocked = (fine) => (value) => {
  const ms = Math.round(value * 1000), pad = (n, digits = 2) => String(Math.floor(n)).padStart(digits, '0');
  const text = `${pad(ms / 3600000)}:${pad(ms / 60000 % 60)}:${pad(ms / 1000 % 60)}`;
  return fine ? `${text}.${pad(ms % 1000, 3)}` : text;
};

function vertices(path) {
  // Each point of a line, told with the words of its first point and the scales of its axes.
  const frame = path.closest('.role-frame, .role-scope[class*="_group"]') || path.ownerSVGElement;
  const scales = [...frame.querySelectorAll('.role-axis[aria-label]')].map(scale).filter(Boolean);
  const [x, y] = [scales.find((one) => one.flat), scales.find((one) => !one.flat)];
  const words = path.getAttribute('aria-label').split('; ');
  const matrix = path.getScreenCTM();
  if (!x || !y || !matrix) return [];
  const turned = (path.getAttribute('d') || '').matchAll(/[ML]?\s*(-?[\d.]+)[ ,](-?[\d.]+)/g);
  return [...turned].map(([, left, top]) => {
    const point = new DOMPoint(Number(left), Number(top)).matrixTransform(matrix);
    const label = words.map((word, place) => retold(word, [x.at(point.x), y.at(point.y)][place])).join('; ');
    return {x: point.x, y: point.y, label};
  });
}

function retold(word, value) {
  // A mark is told as "x title: x; y title: y; more": its first two values are the point's.
  return value === undefined ? word : `${word.slice(0, word.lastIndexOf(': '))}: ${value}`;
}

function points(svg) {
  // Every mark that can be read, as it stands on the screen now, from left to right.
  const found = [];
  for (const mark of svg.querySelectorAll(MARKS)) {
    if (mark.classList.contains('dim')) continue;
    if (/^(line|area) mark$/.test(mark.getAttribute('aria-roledescription') || '')) {
      found.push(...vertices(mark));
      continue;
    }
    const box = mark.getBoundingClientRect();
    const label = mark.getAttribute('aria-label');
    found.push({x: box.left + box.width / 2, y: box.top + box.height / 2, label, box});
  }
  return found.sort((a, b) => a.x - b.x || a.y - b.y);
}

function nearest(all, x, y) {
  let best = null, least = NEAR;
  for (const one of all) {
    const inside = one.box && x >= one.box.left && x <= one.box.right && y >= one.box.top && y <= one.box.bottom;
    const away = inside ? 0 : Math.hypot(one.x - x, one.y - y);
    if (away < least || (inside && least > 0)) [best, least] = [one, away];
  }
  return best;
}

function button(label, name, act) {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = label;
  made.setAttribute('aria-label', name);
  made.title = name;
  made.addEventListener('click', act);
  return made;
}

function readable(card, svg) {
  const readout = document.createElement('div');
  readout.className = 'readout';
  readout.setAttribute('role', 'status');
  const dot = document.createElement('div');
  dot.className = 'dot';
  card.append(dot, readout);
  let at = -1, seen = null;

  const all = () => seen || (seen = points(svg));
  const hide = () => { readout.textContent = ''; card.classList.remove('reading'); };
  const show = (one) => {
    if (!one) return hide();
    const box = card.getBoundingClientRect();
    readout.textContent = one.label;
    card.classList.add('reading');
    dot.style.left = `${one.x - box.left + card.scrollLeft}px`;
    dot.style.top = `${one.y - box.top}px`;
    const width = readout.offsetWidth, left = one.x - box.left;
    const aside = left + width + 16 > box.width ? left - width - 12 : left + 12;
    readout.style.left = `${Math.max(4, aside) + card.scrollLeft}px`;
    readout.style.top = `${Math.max(4, one.y - box.top - readout.offsetHeight - 10)}px`;
  };
  const step = (to) => {
    at = Math.max(0, Math.min(all().length - 1, to));
    show(all()[at]);
  };

  svg.addEventListener('pointermove', (event) => show(nearest(all(), event.clientX, event.clientY)));
  svg.addEventListener('pointerenter', () => { seen = null; });
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('focus', () => { seen = null; });
  svg.addEventListener('blur', hide);
  return {step, hide, forget: () => { seen = null; }, at: () => at, last: () => all().length - 1};
}

function zoomable(svg) {
  const whole = svg.viewBox.baseVal;
  const home = [whole.x, whole.y, whole.width, whole.height];
  let now = [...home];
  const set = (box) => {
    const width = Math.min(box[2], home[2]), height = Math.min(box[3], home[3]);
    const keep = (from, size, start, most) => Math.max(start, Math.min(from, start + most - size));
    now = [keep(box[0], width, home[0], home[2]), keep(box[1], height, home[1], home[3]), width, height];
    svg.setAttribute('viewBox', now.join(' '));
  };
  const by = (factor) => {
    const [x, y, width, height] = now;
    set([x + width * (1 - factor) / 2, y + height * (1 - factor) / 2, width * factor, height * factor]);
  };
  const move = (dx, dy) => set([now[0] + dx * now[2], now[1] + dy * now[3], now[2], now[3]]);
  return {in: () => by(0.7), out: () => by(1 / 0.7), reset: () => set(home), move};
}

function thinnable(svg, changed) {
  const symbols = [...svg.querySelectorAll('.role-legend-symbol path')];
  const labels = [...svg.querySelectorAll('.role-legend-label text')];
  const paint = (mark) => [mark.getAttribute('fill'), mark.getAttribute('stroke')]
    .find((one) => one && !['none', 'transparent', 'white'].includes(one));
  const colours = symbols.map(paint);
  if (symbols.length !== labels.length || new Set(colours).size !== colours.length) return;
  const marks = [...svg.querySelectorAll('.role-mark > path, .role-mark > rect')];
  labels.forEach((label, place) => {
    label.setAttribute('tabindex', '0');
    label.setAttribute('role', 'button');
    label.setAttribute('aria-pressed', 'true');
    const turn = () => {
      const off = label.getAttribute('aria-pressed') === 'true';
      label.setAttribute('aria-pressed', String(!off));
      symbols[place].classList.toggle('dim', off);
      label.classList.toggle('off', off);
      for (const mark of marks) if (paint(mark) === colours[place]) mark.classList.toggle('dim', off);
      changed();
    };
    label.addEventListener('click', turn);
    symbols[place].addEventListener('click', turn);
    label.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      event.stopPropagation();
      turn();
    });
  });
}

for (const card of document.querySelectorAll('.chart')) {
  const svg = card.querySelector('svg');
  if (!svg || !svg.viewBox.baseVal || !svg.viewBox.baseVal.width) continue;
  const reader = readable(card, svg), zoom = zoomable(svg);
  const then = (act) => () => { act(); reader.forget(); reader.hide(); };
  thinnable(svg, reader.forget);
  const tools = document.createElement('div');
  tools.className = 'tools';
  tools.append(button('+', 'zoom in', then(zoom.in)), button('−', 'zoom out', then(zoom.out)),
    button('⟲', 'show the whole chart', then(zoom.reset)));
  card.prepend(tools);
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('role', 'group');
  svg.setAttribute('aria-label', 'chart: arrow keys read its marks, plus and minus zoom, 0 shows all');
  const keys = {
    ArrowRight: () => reader.step(reader.at() + 1), ArrowLeft: () => reader.step(reader.at() - 1),
    Home: () => reader.step(0), End: () => reader.step(reader.last()),
    Escape: reader.hide, '+': then(zoom.in), '-': then(zoom.out), 0: then(zoom.reset),
  };
  const moves = {ArrowRight: [0.1, 0], ArrowLeft: [-0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1]};
  svg.addEventListener('keydown', (event) => {
    if (event.target !== svg || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = event.shiftKey && moves[event.key] ? then(() => zoom.move(...moves[event.key])) : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  let held = null;
  svg.addEventListener('pointerdown', (event) => { held = event; });
  svg.addEventListener('pointerup', () => { held = null; });
  svg.addEventListener('pointermove', (event) => {
    if (!held || !event.buttons) return;
    const box = svg.getBoundingClientRect();
    then(() => zoom.move((held.clientX - event.clientX) / box.width, (held.clientY - event.clientY) / box.height))();
    held = event;
  });
}
