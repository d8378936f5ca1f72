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

function moment(text) {
  // Seconds that a label of a time axis stands for; NaN where it is none.
  if (/^\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text)) {
    const [hours, minutes, seconds] = text.split(':').map(Number);
    return hours * 3600 + minutes * 60 + (seconds || 0);
  }
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return Date.parse(text) / 1000;
  return /^\d\d-\d\d \d\d:\d\d$/.test(text) ? Date.parse(`2000-${text.replace(' ', 'T')}Z`) / 1000 : NaN;
}

function shown(text, step) {
  // How to say a value on the axis that has the label ``text`` and ticks of ``step`` seconds.
  if (Number.isNaN(moment(text))) return (value) => Number(value.toPrecision(4)).toLocaleString('en');
  const digits = step < 1 ? 23 : step < 10 ? 22 : 19;
  const [from, to] = text.length > 12 || /^\d{4}-/.test(text) ? [0, 16] : /^\d\d-/.test(text) ? [5, 16] : [11, digits];
  return (value) => new Date(Math.round(value * 1000)).toISOString().slice(from, to).replace('T', ' ');
}

function scale(axis) {
  // The scale of an axis, from the places and labels of its ticks; null where it is not even.
  const ticks = [...axis.querySelectorAll('.role-axis-tick line')];
  const labels = [...axis.querySelectorAll('.role-axis-label text')].map(said);
  if (ticks.length < 2 || ticks.length !== labels.length) return null;
  const flat = Number(ticks[0].getAttribute('x2') || 0) === 0;
  const half = 0.5 * axis.getScreenCTM().a;  // axes stand half a pixel beside what they measure
  const places = ticks.map((tick) => {
    const box = tick.getBoundingClientRect();
    return (flat ? box.left + box.width / 2 : box.top + box.height / 2) - half;
  });
  const timed = labels.every((text) => !Number.isNaN(moment(text)));
  const values = labels.map(timed ? moment : number);
  if (timed) values.forEach((one, at) => { if (at && one < values[at - 1]) values[at] += 86400; });
  const end = places.length - 1;
  const rate = (values[end] - values[0]) / (places[end] - places[0]);
  const at = (place) => values[0] + (place - places[0]) * rate;
  const even = places.every((place, n) => Math.abs(place - places[0] - (values[n] - values[0]) / rate) < 2);
  return even ? {flat, at: (place) => shown(labels[0], values[1] - values[0])(at(place))} : null;
}

function vertices(path) {
  // Each point of a line, told with the words of its first point and the scales of its axes.
  const frame = path.closest('.role-frame, .role-scope[class*="_group"]') || path.ownerSVGElement;
  const scales = [...frame.querySelectorAll('.role-axis[aria-label]')].map(scale).filter(Boolean);
  const [x, y] = [scales.find((one) => one.flat), scales.find((one) => !one.flat)];
  const words = path.getAttribute('aria-label').split('; ');
  const matrix = path.getScreenCTM();
  if (!matrix) return [];
  const turned = (path.getAttribute('d') || '').matchAll(/[ML]?\s*(-?[\d.]+)[ ,](-?[\d.]+)/g);
  return [...turned].map(([, left, top]) => {
    const point = new DOMPoint(Number(left), Number(top)).matrixTransform(matrix);
    const told = [x ? x.at(point.x) : null, y ? y.at(point.y) : null];
    const label = words.map((word, place) => retold(word, told[place])).filter(Boolean).join('; ');
    return {x: point.x, y: point.y, label};
  });
}

function retold(word, value) {
  // A mark is told as "x title: x; y title: y; more": its first two values are the point's, and
  // are left out where their axis cannot be read.
  if (value === undefined) return word;
  return value === null ? '' : `${word.slice(0, word.lastIndexOf(': '))}: ${value}`;
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
